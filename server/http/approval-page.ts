import { type Field, fieldOf, pageOf } from "./page-parts.ts";

const CREDENTIALS: readonly Field[] = [
  { name: "email", label: "E-mail", type: "email", autocomplete: "username" },
  { name: "password", label: "Password", type: "password", autocomplete: "current-password" },
];

const CODE: Field = {
  name: "code",
  label: "Code",
  type: "text",
  autocomplete: "one-time-code",
  inputmode: "numeric",
  hint: "The six digits that your authenticator app shows.",
};

/** What people often deny for, said so that an agent knows what to do next. */
const REASONS = [
  "Too expensive: look for a cheaper offer.",
  "Not needed: go on without it.",
  "Wrong recipient: check whom to pay, then ask again.",
  "Say more exactly what it is for, then ask again.",
];

const row = (label: string, value: string): string => `<div><dt>${label}</dt><dd>${value}</dd></div>`;

/**
 * The page where a person decides about a payment on hold: the same for every id, since what is behind one is shown only to
 * who is signed in, by the API. Texts of agents come into `<bdi>`s, so that no direction marks in them turn what stands around.
 */
export const APPROVAL_PAGE = pageOf({
  title: "Payment approval",
  script: "approval.js",
  styles: ["page.css", "approval.css"],
  main: `<p id="loading" role="status">Loading…</p>
<div id="trouble" hidden><p id="trouble-text" class="error" role="status"></p>
<button id="again" type="button" class="second">Try again</button></div>

<form method="post" id="sign-in" novalidate hidden>
<p>A payment of an agent may wait for your decision. Sign in to see it.</p>
${CREDENTIALS.map(fieldOf).join("\n")}
<div id="second-factor" hidden>${fieldOf(CODE)}</div>
<button type="submit">Sign in</button>
</form>

<section id="outcome" role="status" tabindex="-1" hidden>
<p id="outcome-title"></p>
<p id="outcome-text" hidden></p>
<blockquote id="outcome-feedback" hidden></blockquote>
</section>

<section id="payment" aria-label="The payment" tabindex="-1" hidden>
<p id="amount"></p>
<dl>
${row("To", `<bdi id="recipient"></bdi> <span id="rail"></span>`)}
${row("Asked by", `<bdi id="agent"></bdi>`)}
${row("Purpose, in the agent’s words", `<bdi id="purpose"></bdi>`)}
${row("Why it waits for a person", `<ul id="flags"></ul>`)}
${row("The agent’s budget when it asked", `<span id="budget"></span>`)}
${row("Asked at", `<time id="asked"></time>`)}
${row("Decide until", `<time id="until"></time> <strong id="left" role="timer"></strong>`)}
</dl>
</section>

<div id="choice" hidden>
<p id="warning" class="error" hidden></p>
<button id="approve" type="button">Approve</button>
<button id="deny" type="button" class="second">Deny…</button>
</div>

<form method="post" id="denial" novalidate hidden>
<fieldset><legend>Usual reasons</legend>
${REASONS.map((reason) => `<button type="button" class="reason">${reason}</button>`).join("\n")}
</fieldset>
<label for="feedback">Why not? The agent reads this.</label>
<textarea id="feedback" name="feedback" rows="4" required aria-describedby="feedback-count feedback-problem"></textarea>
<p id="feedback-count" class="hint"></p>
<p id="feedback-problem" class="error" hidden></p>
<button type="submit">Deny the payment</button>
<button id="back" type="button" class="second">Back</button>
</form>

<footer id="who" hidden>
<p>Signed in as <bdi id="person"></bdi> of <bdi id="organization"></bdi>.</p>
<button id="sign-out" type="button" class="second">Sign out</button>
</footer>`,
});
