// What is said of a payment on hold, in words.

const TWO_DIGITS = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/** `1,234.50 USD` */
export const money = (cents, currency) => `${TWO_DIGITS.format(cents / 100)} ${currency}`;

const DAY_AND_TIME = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });

/** A time of the API's on the reader's own wall. */
export const onTheWall = (iso) => DAY_AND_TIME.format(new Date(iso));

/** What is left of a time, to the minute, and in its last hour to the second. */
export function timeLeft(ms) {
  const seconds = Math.max(0, Math.ceil(ms / 1_000));
  const minutes = Math.floor(seconds / 60);
  if (minutes >= 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min left`;
  return minutes > 0 ? `${minutes} min ${seconds % 60} s left` : `${seconds} s left`;
}

/** A wait of the API's, to the minute once it is one. */
export const waitOf = (seconds = 60) =>
  seconds < 60 ? `${seconds} seconds` : seconds < 120 ? "a minute" : `${Math.ceil(seconds / 60)} minutes`;

/**
 * A text of somebody's as it is, but for marks that would turn the order of its letters around: those are named instead, so that a
 * recipient reads as what it is.
 */
export const asWritten = (text) =>
  text.replaceAll(
    /[\u202a-\u202e\u2066-\u2069]/g,
    (mark) => `[U+${mark.charCodeAt(0).toString(16).toUpperCase()}]`,
  );

/** Why a payment waits, by the type of the rule that flagged it. */
export const FLAGS = {
  agent_threshold: "It is above what the agent may pay without asking.",
  amount_above: "It is above an amount that the agent’s team or project has set.",
  new_recipient: "No payment of this agent to this recipient has gone through before.",
  recipient: "The recipient is one that a person is to look at.",
  merchant_category: "A person is to look at this kind of merchant.",
  rail: "A person is to look at every payment of this way of paying.",
  velocity: "The agent has made many payments in a short time.",
  time_window: "It comes at a time for which a person is to look at payments.",
  duplicate: "It is like another payment of the agent shortly before: the same recipient and amount.",
};

export const RAILS = {
  card: "by card",
  wallet: "from the agent’s wallet, on chain: once sent, it can’t be taken back",
};

/** The budget as it was when the agent asked, with this payment's amount reserved. */
export const budgetOf = ({ budgetContext, currency }) => {
  const { budgetCents, remainingCents, reservedCents, spentCents } = budgetContext;
  const [budget, spent, reserved, left] = [budgetCents, spentCents, reservedCents, remainingCents].map(
    (cents) => money(cents, currency),
  );
  return `${left} would be left of ${budget}: ${spent} were spent, ${reserved} reserved with this payment.`;
};

/**
 * What became of an approval that is resolved: a title, what there is to add, and the feedback if it was denied with one.
 * `transaction` says why where the approval does not; null: it could not be read yet.
 */
export function outcomeOf(approval, transaction, myId) {
  const { feedback, resolution, resolvedAt, resolvedBy } = approval;
  const by = resolvedBy && (resolvedBy.userId === myId ? "you" : asWritten(resolvedBy.name));
  const decided = by === null ? "" : ` by ${by}`;
  const at = onTheWall(resolvedAt);
  const reason = transaction?.denialReason ?? "";
  switch (resolution) {
    case "approved":
      return transaction?.status === "reversed"
        ? { title: "Paid, then reversed", text: `Approved${decided}, ${at}. The money came back afterwards.` }
        : { title: "Approved and paid", text: `Approved${decided}, ${at}.` };
    case "executing":
      return {
        title: "Approved, on its way",
        text: `Approved${decided}. The payment is not final yet; this page follows it.`,
      };
    case "failed":
      return {
        title: "Approved, but not paid",
        text: `Approved${decided}, ${at}, but the payment failed. ${reason}`.trim(),
      };
    case "denied":
      return by === null
        ? { title: "Withdrawn", text: `${reason} Nothing was paid (${at}).`.trim() }
        : { title: "Denied", text: `Denied${decided}, ${at}. Nothing was paid. The agent reads:`, feedback };
    default:
      return { title: "Expired", text: `Nobody decided in time (${at}). Nothing was paid.` };
  }
}
