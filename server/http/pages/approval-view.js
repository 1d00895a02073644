// What the page of a payment on hold shows: all of it follows from its state.

import { show } from "./forms.js";
import {
  asWritten,
  budgetOf,
  FLAGS,
  money,
  onTheWall,
  outcomeOf,
  RAILS,
  timeLeft,
} from "./approval-words.js";

const at = (name) => document.getElementById(name);

export const isPending = ({ approval }) => approval !== null && approval.resolution === undefined;

/** By the service's clock. */
export const msLeft = ({ aheadMs, approval }) => Date.parse(approval.expiresAt) - Date.now() - aheadMs;

/** Whether there is a decision to take: not while one is on its way, or nobody knows what became of it. */
export const mayDecide = (state) => isPending(state) && state.decision === null && msLeft(state) > 0;

/** Shows or hides each part. Focus does not stay in what is hidden now. */
export function render(state) {
  const { approval, denying, isPaused, phase, trouble, who } = state;
  const focused = document.activeElement;
  at("loading").hidden = phase !== "loading" || trouble !== "";
  at("trouble").hidden = trouble === "";
  show(at("trouble-text"), trouble);
  at("sign-in").hidden = phase !== "signed-out";
  at("second-factor").hidden = !state.needsCode;
  at("payment").hidden = approval === null;
  renderOutcome(outcomeNow(state));
  at("choice").hidden = !mayDecide(state) || denying;
  show(
    at("warning"),
    isPaused ? "The agent is paused: resume it first. What is approved while it is paused fails." : "",
  );
  at("denial").hidden = !mayDecide(state) || !denying;
  show(at("left"), isPending(state) ? timeLeft(msLeft(state)) : "");
  at("who").hidden = who === null;
  show(at("person"), who === null ? "" : `${asWritten(who.user.name)} (${who.user.email})`);
  show(at("organization"), who === null ? "" : asWritten(who.organization.name));
  if (focused?.closest("[hidden]")) land();
}

/** Puts the focus on what a person's own act has led to. */
export function land() {
  const found = [at("problem"), at("outcome"), at("sign-in"), at("payment")].find(({ hidden }) => !hidden);
  (found?.querySelector("input") ?? found)?.focus();
}

/** Writes down what of an approval never changes. Null takes it away. */
export function renderPayment(approval) {
  for (const place of at("payment").querySelectorAll("[id]")) place.textContent = "";
  if (approval === null) return;
  const amount = money(approval.amountCents, approval.currency);
  const texts = {
    amount,
    recipient: asWritten(approval.recipient),
    rail: `(${RAILS[approval.rail] ?? approval.rail})`,
    agent: asWritten(approval.agentName),
    purpose: asWritten(approval.purpose),
    budget: budgetOf(approval),
    approve: `Approve ${amount}`,
  };
  for (const [name, text] of Object.entries(texts)) at(name).textContent = text;
  for (const [name, iso] of [
    ["asked", approval.createdAt],
    ["until", approval.expiresAt],
  ]) {
    at(name).dateTime = iso;
    at(name).textContent = onTheWall(iso);
  }
  at("flags").replaceChildren(
    ...approval.flaggedByRuleTypes.map((type) =>
      Object.assign(document.createElement("li"), { textContent: FLAGS[type] ?? type }),
    ),
  );
}

function renderOutcome(outcome) {
  at("outcome").hidden = outcome === null;
  const { feedback, text, title } = outcome ?? {};
  show(at("outcome-title"), title ?? "");
  show(at("outcome-text"), text ?? "");
  show(at("outcome-feedback"), asWritten(feedback ?? ""));
}

/** What is to be said of the payment as it stands; null: it waits. */
function outcomeNow(state) {
  const { approval, decision, phase, transaction, who } = state;
  if (phase === "missing")
    return {
      title: "There is no such payment here",
      text:
        `${asWritten(who.organization.name)} has no payment on hold under this address. Either the address is not complete, or ` +
        "the payment is another organization’s: then sign out, and sign in with your account there.",
    };
  if (approval === null) return null;
  if (approval.resolution !== undefined) {
    const outcome = outcomeOf(approval, transaction, who.user.id);
    const isMine = approval.resolvedBy?.userId === who.user.id;
    return state.cameLate && !isMine
      ? { ...outcome, text: `Your decision came too late. ${outcome.text}` }
      : outcome;
  }
  if (decision === "sending") return { title: "Sending your decision…" };
  if (decision === "lost")
    return { title: "Looking what became of your decision…", text: "The answer to it was lost." };
  if (decision === "late") return { title: "It is decided already", text: "Looking who decided what…" };
  return msLeft(state) > 0 ? null : { title: "The time to decide is over" };
}
