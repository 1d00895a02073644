// Hands the form and the token of the link to the API; the session comes back in cookies that no script can read.

import { clear, explain, show } from "./forms.js";
import { send } from "./session.js";

const form = document.querySelector("form");
const problem = document.getElementById("problem");
const button = form.querySelector("button");

const tokenOfTheLink = () => new URLSearchParams(location.hash.slice(1)).get("token") ?? "";

const MESSAGES = {
  NOT_FOUND: "This link is not complete or not valid any more: it was used or withdrawn, or is too old.",
};

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
  clear(form, problem);
  const fields = Object.fromEntries(new FormData(form));
  const answer = await send("POST", form.dataset.route, { ...fields, token: tokenOfTheLink() });
  if (answer.status === 201) welcome(answer.body);
  else explain(form, problem, answer, MESSAGES);
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  button.disabled = true;
  void submit().finally(() => {
    button.disabled = false;
  });
});

/** Before anybody fills in a form that nobody will take. What else may be wrong is said when it is sent. */
async function check() {
  const { status } = await send("POST", form.dataset.check, { token: tokenOfTheLink() });
  if (status === 404) refuse();
}

function refuse() {
  if (form.dataset.used === undefined) {
    return explain(form, problem, { status: 404, body: { error: "NOT_FOUND" } }, MESSAGES);
  }
  form.hidden = true;
  show(problem, form.dataset.used);
  problem.focus();
}

if (tokenOfTheLink() === "") refuse();
else if (form.dataset.check !== undefined) void check();
