// The page of one payment on hold: shows it, follows it, and puts a person's decision to the API, once.

import { isPending, land, mayDecide, msLeft, render, renderPayment } from "./approval-view.js";
import { clear, explain, show } from "./forms.js";
import { ask, send } from "./session.js";
import { waitOf } from "./approval-words.js";

const LOOK_MS = 5_000;
/** Where something is about to come out. */
const LOOK_SOON_MS = 1_500;
/** The longest pause while the service can't be reached. */
const LOOK_LATE_MS = 60_000;
/** How long after its end a payment is about to expire. */
const EXPIRES_WITHIN_MS = 30_000;
/** The service ends every request within 5 s: what was lost and does not show by then has not arrived. */
const SHOWS_WITHIN_MS = 6_000;
/** The Date header counts whole seconds; what differs by less is no other clock. */
const SAME_CLOCK_MS = 1_500;
const FEEDBACK_CHARACTERS_MAX = 1_000;

const id = location.pathname.split("/").at(-1);
/** Anything else would be another path of the API's, or none. */
const isApprovalId = /^apr_[0-9A-HJKMNP-TV-Z]{26}$/.test(id);

const at = (name) => document.getElementById(name);
const [signIn, denial, problem] = [at("sign-in"), at("denial"), at("problem")];
const feedback = at("feedback");

const state = {
  /** `loading`, `signed-out`, `missing` (no such approval for whoever is signed in) or `known`. */
  phase: "loading",
  /** `{ user, organization }` of whoever is signed in. */
  who: null,
  approval: null,
  /** The payment itself, once the approval is resolved. */
  transaction: null,
  isPaused: false,
  needsCode: false,
  denying: false,
  /** Of one's own decision: null, `sending`, `lost` (its answer) or `late` (another one came first). */
  decision: null,
  cameLate: false,
  lostAt: 0,
  /** Why the last look failed, how many have in a row, and for how long the service asks for a pause. */
  trouble: "",
  failures: 0,
  pauseMs: 0,
  /** The service's clock, less this machine's. */
  aheadMs: 0,
  /** Counts the sign-outs: what was asked for before one is not shown after it. */
  signOuts: 0,
};

let looking = null;
let timer;

/** Reads it all again, shows it, and plans the next look. With `anew` also who is signed in, and whether the agent is paused. */
async function look(anew = false) {
  clearTimeout(timer);
  looking ??= read(anew).finally(() => {
    looking = null;
  });
  await looking;
  render(state);
  plan();
}

async function read(anew) {
  const { signOuts } = state;
  const began = Date.now();
  const found = await readAll(anew);
  if (signOuts !== state.signOuts) return;
  if (found.failed?.status === 401) return signedOut("Your session has ended. Sign in again.");
  if (found.who) state.who = found.who;
  if (found.approval === null) missing();
  else if (found.approval !== undefined) take(found, began);
  if (found.failed) return fail(found.failed);
  Object.assign(state, { trouble: "", failures: 0, pauseMs: 0, isPaused: found.isPaused ?? state.isPaused });
}

function missing() {
  Object.assign(state, { phase: "missing", approval: null, transaction: null, decision: null });
  renderPayment(null);
}

/** What there is to show, or the first answer that is none. */
async function readAll(anew) {
  const isNew = anew || state.who === null;
  const me = isNew ? await ask("GET", "/v1/auth/me") : null;
  if (me !== null && me.status !== 200) return { failed: me };
  const who = me?.body;
  const answer = isApprovalId ? await ask("GET", `/v1/approvals/${id}`) : null;
  if (answer === null || answer.status === 404) return { who, approval: null };
  if (answer.status !== 200) return { who, failed: answer };
  const { body, now } = answer;
  const { approval } = body;
  if (approval.resolution !== undefined) {
    const paid = await ask("GET", `/v1/transactions/${approval.transactionId}`);
    return paid.status === 200
      ? { who, approval, now, transaction: paid.body.transaction }
      : { who, approval, now, failed: paid };
  }
  const agent = isNew ? await ask("GET", `/v1/agents/${approval.agentId}`) : null;
  return {
    who,
    approval,
    now,
    isPaused: agent?.status === 200 ? agent.body.agent.state === "paused" : undefined,
  };
}

/** An approval never goes back: an answer that was overtaken by a later one does not count. */
const RANKS = { executing: 1 };
const rankOf = (approval) => (approval.resolution === undefined ? 0 : (RANKS[approval.resolution] ?? 2));

function take({ approval, now, transaction = null }, began) {
  if (now !== null) {
    const aheadMs = now - Date.now();
    if (Math.abs(aheadMs - state.aheadMs) > SAME_CLOCK_MS) state.aheadMs = aheadMs;
  }
  if (state.approval === null) renderPayment(approval);
  else if (rankOf(approval) < rankOf(state.approval)) return;
  Object.assign(state, { phase: "known", approval, transaction });
  if (!isPending(state)) {
    Object.assign(state, { decision: null, denying: false });
    show(problem, "");
  } else if (state.decision === "lost" && began - state.lostAt > SHOWS_WITHIN_MS) {
    state.decision = null;
    show(problem, "Your decision has not arrived: the payment still waits. Decide again.");
  }
}

function fail({ body, status }) {
  state.failures += 1;
  state.pauseMs = (body?.retry_after_seconds ?? 0) * 1_000;
  if (status === 429)
    state.trouble = `Too many requests: looks again in ${waitOf(body?.retry_after_seconds)}.`;
  else if (status === null || status >= 500)
    state.trouble = navigator.onLine
      ? "The service can’t be reached at the moment."
      : "There is no network at the moment.";
  else state.trouble = body?.message ?? "";
}

function plan() {
  clearTimeout(timer);
  const { approval, decision, failures, pauseMs, phase, transaction } = state;
  if (document.visibilityState !== "visible" || decision === "sending") return;
  const changes = phase === "known" && (transaction === null || approval.resolution === "executing");
  if (failures > 0) {
    const slower = Math.min(LOOK_MS * 2 ** (failures - 1), LOOK_LATE_MS);
    timer = setTimeout(lookOn, Math.max(slower, pauseMs));
  } else if (changes) timer = setTimeout(lookOn, isSoon() ? LOOK_SOON_MS : LOOK_MS);
}

const lookOn = () => void look();

function isSoon() {
  if (state.decision !== null) return true;
  if (!isPending(state)) return false;
  const left = msLeft(state);
  return left < 0 && left > -EXPIRES_WITHIN_MS;
}

function signedOut(note) {
  const was = state.who !== null;
  state.signOuts += 1;
  Object.assign(state, {
    phase: "signed-out",
    who: null,
    approval: null,
    transaction: null,
    isPaused: false,
  });
  Object.assign(state, { decision: null, cameLate: false, needsCode: false, trouble: "", failures: 0 });
  renderPayment(null);
  show(problem, was ? note : "");
}

const SIGN_IN_MESSAGES = {
  SECOND_FACTOR_INVALID: "The code is wrong, or was used already: wait for the next one.",
};

async function signInWith({ code, ...credentials }) {
  const asked = state.needsCode ? { ...credentials, code: code.replaceAll(/\s/g, "") } : credentials;
  const answer = await send("POST", "/v1/auth/sign-in", asked);
  if (answer.status === 200) {
    signIn.reset();
    Object.assign(state, { phase: "loading", who: answer.body, needsCode: false });
    await look(true);
    return land();
  }
  const { error, retry_after_seconds: seconds } = answer.body ?? {};
  if (error === "SECOND_FACTOR_REQUIRED") {
    state.needsCode = true;
    render(state);
    return at("code").focus();
  }
  const SECOND_FACTOR_LOCKED = `Too many wrong codes: try again in ${waitOf(seconds)}.`;
  explain(signIn, problem, answer, { ...SIGN_IN_MESSAGES, SECOND_FACTOR_LOCKED });
}

signIn.addEventListener("submit", (event) => {
  event.preventDefault();
  clear(signIn, problem);
  const button = signIn.querySelector("button");
  button.disabled = true;
  void signInWith(Object.fromEntries(new FormData(signIn))).finally(() => {
    button.disabled = false;
  });
});

async function signOut() {
  const answer = await ask("POST", "/v1/auth/sign-out");
  if (answer.status !== 204 && answer.status !== 401) {
    fail(answer);
    return render(state);
  }
  denial.reset();
  signedOut("");
  render(state);
  land();
}

at("sign-out").addEventListener("click", () => void signOut());

/**
 * Puts the decision to the API. A refusal is final; whatever else is no answer to rely on, and then it is read what became of
 * it before anything is offered again.
 */
async function decide(how, body) {
  if (!mayDecide(state)) return;
  clear(denial, problem);
  clearTimeout(timer);
  state.decision = "sending";
  render(state);
  land();
  const { signOuts } = state;
  const answer = await ask("POST", `/v1/approvals/${id}/${how}`, body);
  if (signOuts !== state.signOuts) return;
  const { status } = answer;
  if (status === 401) {
    signedOut("Your session has ended, and nothing was decided. Sign in, then decide again.");
    render(state);
    return land();
  }
  if (status === 200) take({ approval: answer.body.approval, now: answer.now }, Date.now());
  else if (status === 409) Object.assign(state, { decision: "late", cameLate: true });
  else if (status === null || status >= 500) Object.assign(state, { decision: "lost", lostAt: Date.now() });
  else {
    state.decision = null;
    render(state);
    explain(denial, problem, answer);
    return plan();
  }
  // What is being read may be older than the decision.
  await looking;
  await look();
  land();
}

at("approve").addEventListener("click", () => void decide("approve"));
at("deny").addEventListener("click", () => deny(true));
at("back").addEventListener("click", () => deny(false));

function deny(denying) {
  state.denying = denying;
  clear(denial, problem);
  render(state);
  (denying ? feedback : at("deny")).focus();
}

const REASONS = [...denial.querySelectorAll(".reason")].map(({ textContent }) => textContent);

denial.addEventListener("click", ({ target }) => {
  if (!target.classList.contains("reason")) return;
  const own = feedback.value.trim();
  feedback.value = own === "" || REASONS.includes(own) ? target.textContent : `${own}\n${target.textContent}`;
  count();
  feedback.focus();
});

/** In characters as the API counts them. */
function count() {
  const { length } = [...feedback.value];
  at("feedback-count").textContent = `${length.toLocaleString("en")} of 1,000 characters`;
  return length;
}

feedback.addEventListener("input", count);
denial.addEventListener("reset", () => setTimeout(count));
count();

denial.addEventListener("submit", (event) => {
  event.preventDefault();
  const message =
    feedback.value.trim() === ""
      ? "Say why: it is what the agent gets to read."
      : count() > FEEDBACK_CHARACTERS_MAX
        ? "This is too long."
        : null;
  if (message === null) return void decide("deny", { feedback: feedback.value });
  clear(denial, problem);
  explain(denial, problem, { status: 400, body: { issues: [{ path: "feedback", message }] } });
});

/** Something may have changed. Whoever is signing in is left alone. */
function lookAgain() {
  if (document.visibilityState === "visible" && state.phase !== "signed-out") void look(true);
  else plan();
}

at("again").addEventListener("click", lookAgain);
addEventListener("online", lookAgain);
document.addEventListener("visibilitychange", lookAgain);
setInterval(() => {
  if (isPending(state)) render(state);
}, 1_000);
void look();
