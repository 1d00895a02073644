/** What the service's own pages are made of. Everything in them is written here: nothing of a request gets into one. */

export interface Field {
  readonly name: string;
  readonly label: string;
  readonly type: "text" | "email" | "password";
  readonly autocomplete: string;
  readonly inputmode?: "numeric";
  readonly hint?: string;
}

export interface PageParts {
  readonly title: string;
  /** Names of scripts and styles under `/assets`; a script is a module. */
  readonly script: string;
  readonly styles: readonly string[];
  /** HTML below the heading. */
  readonly main: string;
}

/** A whole page: nothing inline, nothing from elsewhere. */
export function pageOf({ main, script, styles, title }: PageParts): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Agent Spending Control</title>
${styles.map((style) => `<link rel="stylesheet" href="/assets/${style}">`).join("\n")}
<script src="/assets/${script}" type="module"></script></head>
<body class="enter"><main>
<h1>${title}</h1>
<noscript><p class="error">This page needs JavaScript.</p></noscript>
<p id="problem" class="error" role="alert" tabindex="-1" hidden></p>
${main}
</main></body></html>`;
}

/** A field with its label, its hint, and the place where `forms.js` says what is wrong with it. */
export function fieldOf({ autocomplete, hint, inputmode, label, name, type }: Field): string {
  const about = hint === undefined ? `${name}-problem` : `${name}-hint ${name}-problem`;
  const mode = inputmode === undefined ? "" : ` inputmode="${inputmode}"`;
  return `<div><label for="${name}">${label}</label>
<input id="${name}" name="${name}" type="${type}" autocomplete="${autocomplete}"${mode} required aria-describedby="${about}">
${hint === undefined ? "" : `<p id="${name}-hint" class="hint">${hint}</p>`}
<p id="${name}-problem" class="error" hidden></p></div>`;
}
