const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

const escaped = (text: string): string =>
  text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? "");

/**
 * Page for a person whose client cannot be told of the error: it is unknown, or named an address that is not its own. A
 * client that could be told is so once the person follows the link to `returnsTo`.
 */
export const errorPage = (
  error: string,
  description = "",
  returnsTo: { readonly host: string; readonly url: string } | null = null,
): string => `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Not connected</title><meta name="viewport" content="width=device-width"></head>
<body>
<h1>The client was not connected</h1>
<p>Begin again from the client. If that does not help, tell whoever made it:</p>
<p><code>${escaped(error)}</code> ${escaped(description)}</p>
${returnsTo === null ? "" : `<p><a href="${escaped(returnsTo.url)}" rel="noreferrer">Return to ${escaped(returnsTo.host)}</a></p>\n`}</body>
</html>
`;
