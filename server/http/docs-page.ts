import type { OpenApiDocument, OpenApiOperation } from "../../src/contract/openapi.ts";

const escape = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

/** A plain page to read the OpenAPI document: no script, nothing inline, nothing loaded from elsewhere. */
export function docsPage(document: OpenApiDocument): string {
  const sections = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => section(method, path, operation)),
  );
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(document.info.title)}</title>
<link rel="stylesheet" href="/assets/page.css"></head>
<body class="docs"><h1>${escape(document.info.title)}</h1>
<p>${escape(document.info.description)}</p>
<p>The same as a machine reads it: <a href="/v1/openapi.json">/v1/openapi.json</a></p>
${sections.join("\n")}
</body></html>`;
}

function section(method: string, path: string, operation: OpenApiOperation): string {
  const credentials = operation.security.flatMap((scheme) => Object.keys(scheme));
  const answers = Object.entries(operation.responses).map(([status, response]) => {
    const text = "description" in response ? String(response.description) : "";
    return `<li><code>${escape(status)}</code> ${escape(text)}</li>`;
  });
  const body =
    operation.requestBody === undefined
      ? ""
      : `<details><summary>Body</summary>${json(operation.requestBody)}</details>`;
  const parameters =
    operation.parameters === undefined
      ? ""
      : `<details><summary>Parameters</summary>${json(operation.parameters)}</details>`;
  return `<section id="${escape(operation.operationId)}">
<h2><span class="method">${escape(method)}</span> <code>${escape(path)}</code></h2>
<p><strong>${escape(operation.summary)}.</strong> ${escape(operation.description)}</p>
<p>Credential: ${credentials.length === 0 ? "none" : escape(credentials.join(" or "))}</p>
${parameters}${body}
<ul>${answers.join("")}</ul></section>`;
}

const json = (value: unknown): string => `<pre>${escape(JSON.stringify(value, null, 2))}</pre>`;
