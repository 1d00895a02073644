// What the pages' forms have in common: where it is said what is wrong with them.

/** Puts a text in its place, which is hidden while there is none. What stays the same is not written (or read out) again. */
export function show(element, text) {
  if (element.textContent !== text) element.textContent = text;
  element.hidden = text === "";
}

const MESSAGES = {
  RATE_LIMITED: "Too many tries; wait a minute, then try again.",
  SERVICE_UNAVAILABLE: "The service is not available at the moment; try again shortly.",
};

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1).replace(/\.?$/, ".");

const placeOf = (name) => document.getElementById(`${name}-problem`);

/** Takes away what was said of a form, in its own places and in that for the rest. */
export function clear(form, problem) {
  show(problem, "");
  for (const input of form.elements) {
    const own = placeOf(input.name);
    if (own === null) continue;
    show(own, "");
    input.removeAttribute("aria-invalid");
  }
}

/**
 * Says what the API refused, or, with the status null, that it did not answer: next to its field what is about a field, the rest
 * in the place for it; the first of them gets the focus. `messages` has better words than the API's, by code.
 */
export function explain(form, problem, { body, status }, messages = {}) {
  const {
    error,
    issues = [],
    message,
  } = status === null || body === null ? { error: "SERVICE_UNAVAILABLE" } : body;
  const elsewhere = [];
  let first = null;
  for (const issue of issues) {
    const own = placeOf(issue.path);
    if (own === null) {
      elsewhere.push(issue.message);
      continue;
    }
    show(own, sentence(issue.message));
    const input = form.elements.namedItem(issue.path);
    input.setAttribute("aria-invalid", "true");
    first ??= input;
  }
  if (first === null || elsewhere.length > 0) {
    const said = elsewhere.length > 0 ? elsewhere.map(sentence).join(" ") : undefined;
    show(problem, said ?? messages[error] ?? MESSAGES[error] ?? message);
    first = problem;
  }
  first.focus();
}
