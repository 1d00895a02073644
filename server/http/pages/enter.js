// Hands the form and the token of the link to the API; the session comes back in cookies that no script can read.

const form = document.querySelector("form");
const problem = document.getElementById("problem");
const button = form.querySelector("button");

const show = (element, text) => {
  element.textContent = text;
  element.hidden = text === "";
};

const tokenOfTheLink = () => new URLSearchParams(location.hash.slice(1)).get("token") ?? "";

const MESSAGES = {
  NOT_FOUND: "This link is not complete or not valid any more: it was used or withdrawn, or is too old.",
  RATE_LIMITED: "Too many tries; wait a minute, then try again.",
  SERVICE_UNAVAILABLE: "The service is not available at the moment; try again shortly.",
};

function clear() {
  show(problem, "");
  for (const input of form.elements) {
    const own = document.getElementById(`${input.name}-problem`);
    if (own === null) continue;
    show(own, "");
    input.removeAttribute("aria-invalid");
  }
}

/** Next to its field what is about a field, the rest above the form; the first of them gets the focus. */
function explain({ error, issues = [], message }) {
  const elsewhere = [];
  let first = null;
  for (const issue of issues) {
    const own = document.getElementById(`${issue.path}-problem`);
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
    show(problem, elsewhere.length > 0 ? elsewhere.map(sentence).join(" ") : (MESSAGES[error] ?? message));
    first = problem;
  }
  first.focus();
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1).replace(/\.?$/, ".");

function welcome({ organization, user }) {
  // The token is used up; it need not stay in the address.
  history.replaceState(null, "", location.pathname);
  form.hidden = true;
  document.getElementById("who").textContent = user.email;
  document.getElementById("role").textContent = user.role;
  document.getElementById("organization").textContent = organization.name;
  const done = document.getElementById("done");
  done.hidden = false;
  done.focus();
}

async function submit() {
  clear();
  const fields = Object.fromEntries(new FormData(form));
  const response = await fetch(form.dataset.route, {
    method: "POST",
    headers: { "content-type": "application/json", "svc-session": "cookie" },
    body: JSON.stringify({ ...fields, token: tokenOfTheLink() }),
  });
  const answer = await response.json();
  if (response.ok) welcome(answer);
  else explain(answer);
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  button.disabled = true;
  submit()
    .catch(() => explain({ error: "SERVICE_UNAVAILABLE" }))
    .finally(() => {
      button.disabled = false;
    });
});

/** Before anybody fills in a form that nobody will take. What else may be wrong is said when it is sent. */
async function check() {
  const response = await fetch(form.dataset.check, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token: tokenOfTheLink() }),
  });
  if (response.status === 404) refuse();
}

function refuse() {
  if (form.dataset.used === undefined) return explain({ error: "NOT_FOUND" });
  form.hidden = true;
  show(problem, form.dataset.used);
  problem.focus();
}

if (tokenOfTheLink() === "") refuse();
else if (form.dataset.check !== undefined) check().catch(() => undefined);
