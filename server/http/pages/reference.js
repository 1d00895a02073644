// Script of the API reference: Swagger UI for the service's OpenAPI document, with code samples for each operation. Light
// or dark as the reader's system is, or as they choose.
"use strict";

const THEME = "reference-theme";
const DARK = "dark-mode";

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (localStorage.getItem(THEME) ?? (prefersDark.matches ? "dark" : "light")) === "dark";
const showTheme = () => document.documentElement.classList.toggle(DARK, isDark());

showTheme();
prefersDark.addEventListener("change", showTheme);
document.getElementById("theme").addEventListener("click", () => {
  localStorage.setItem(THEME, isDark() ? "light" : "dark");
  showTheme();
});

const RESOLVED_MAX = 5;

/** Resolves references in place. */
function inPlace(document_, value) {
  let found = value;
  for (let steps = 0; steps < RESOLVED_MAX && found?.$ref !== undefined; steps += 1) {
    found = found.$ref
      .slice(2)
      .split("/")
      .reduce((part, name) => part?.[name], document_);
  }
  return found;
}

/** Returns an example request of an operation, from the document's own examples. */
function exampleRequest(document_, path, method) {
  const operation = document_.paths[path][method];
  const filled = (operation.parameters ?? [])
    .filter((parameter) => parameter.in === "path")
    .reduce((text, { name, schema }) => text.replace(`{${name}}`, schema.examples?.[0] ?? name), path);
  const examples = operation.requestBody?.content["application/json"].examples ?? {};
  const [example] = Object.values(examples);
  return {
    method: method.toUpperCase(),
    url: `${location.origin}${filled}`,
    authorization: operation.security.length === 0 ? null : "Bearer $API_KEY",
    body: inPlace(document_, example)?.value,
  };
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

const SAMPLES = {
  curl({ authorization, body, method, url }) {
    const lines = [`curl ${method === "GET" ? "" : `-X ${method} `}${quoted(url)}`];
    if (authorization !== null) lines.push(`-H "Authorization: ${authorization}"`);
    if (body !== undefined) {
      lines.push("-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(body, null, 2))}`);
    }
    return lines.join(" \\\n  ");
  },
  JavaScript({ authorization, body, method, url }) {
    const headers = [
      ...(authorization === null ? [] : ["    Authorization: `Bearer ${process.env.API_KEY}`,"]),
      ...(body === undefined ? [] : ['    "Content-Type": "application/json",']),
    ];
    const lines = [
      `  method: ${JSON.stringify(method)},`,
      ...(headers.length === 0 ? [] : ["  headers: {", ...headers, "  },"]),
      ...(body === undefined
        ? []
        : [`  body: JSON.stringify(${JSON.stringify(body, null, 2).replaceAll("\n", "\n  ")}),`]),
    ];
    return `const response = await fetch(${JSON.stringify(url)}, {\n${lines.join("\n")}\n});\nconst answer = await response.json();`;
  },
  Python({ authorization, body, method, url }) {
    const lines = [
      `    ${JSON.stringify(url)},`,
      ...(authorization === null
        ? []
        : ['    headers={"Authorization": f"Bearer {os.environ[\'API_KEY\']}"},']),
      ...(body === undefined ? [] : [`    json=json.loads(r"""${JSON.stringify(body, null, 2)}"""),`]),
    ];
    const imports = [...(body === undefined ? [] : ["json"]), ...(authorization === null ? [] : ["os"])];
    const head = [...imports.map((name) => `import ${name}`), "import requests"].join("\n");
    return `${head}\n\nresponse = requests.request(\n    "${method}",\n${lines.join("\n")}\n)`;
  },
};

const NAMES = { "examples-select-element": "Example", "content-type": "Media type", servers: "Server" };

/** Returns the name of a field that Swagger UI leaves unnamed. */
const nameOf = (field) =>
  field.closest("[data-param-name]")?.dataset.paramName ??
  NAMES[field.id || field.className] ??
  (field.tagName === "TEXTAREA" ? "Body" : "Value");

const isLabelled = (field) =>
  field.ariaLabel ||
  [...field.labels].some(({ textContent }) => textContent.replace(field.textContent, "").trim() !== "");

/** Names unlabelled fields, and makes the examples scrollable by keyboard. */
function makeAccessible(reference) {
  for (const field of reference.querySelectorAll("select, textarea, input:not([type=file])")) {
    if (!isLabelled(field)) field.ariaLabel = nameOf(field);
  }
  for (const example of reference.querySelectorAll("pre:not([tabindex])")) example.tabIndex = 0;
}

/** Adds code samples before a request is sent. Swagger UI itself shows only sent requests. */
const withSamples = (document_) => () => ({
  wrapComponents: {
    // The path is inside the button that opens its operation, where a link is not allowed.
    DeepLink:
      (_Original, { React }) =>
      ({ text }) =>
        React.createElement("span", null, text),
    responses:
      (Original, { React }) =>
      (props) => {
        const request = exampleRequest(document_, props.path, props.method);
        const samples = Object.entries(SAMPLES).map(([language, sample]) =>
          React.createElement(
            "details",
            { key: language, className: "sample" },
            React.createElement("summary", null, language),
            React.createElement("pre", null, React.createElement("code", null, sample(request))),
          ),
        );
        return React.createElement(
          React.Fragment,
          null,
          React.createElement(
            "section",
            { className: "samples" },
            React.createElement("h4", null, "Code samples"),
            samples,
          ),
          React.createElement(Original, props),
        );
      },
  },
});

async function renderReference() {
  const response = await fetch("/v1/openapi.json");
  if (!response.ok) throw new Error(`The document is answered ${response.status}; try again in a minute.`);
  const document_ = await response.json();
  const reference = document.getElementById("reference");
  new MutationObserver(() => makeAccessible(reference)).observe(reference, {
    childList: true,
    subtree: true,
  });
  SwaggerUIBundle({
    // Requests go to the page's own origin: the content policy allows no other host.
    spec: { ...document_, servers: [{ url: location.origin }] },
    dom_id: "#reference",
    deepLinking: true,
    docExpansion: "list",
    defaultModelsExpandDepth: 0,
    displayRequestDuration: true,
    filter: true,
    // Keys are kept in memory only.
    persistAuthorization: false,
    requestSnippetsEnabled: true,
    tryItOutEnabled: true,
    // Disables the external validator.
    validatorUrl: null,
    presets: [SwaggerUIBundle.presets.apis],
    plugins: [withSamples(document_)],
  });
}

renderReference().catch((error) => {
  document.getElementById("reference").textContent = String(error.message);
});
