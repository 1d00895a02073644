/** Explanations and remedies for Stripe's results of a trial authorization. */
const WORDS: Readonly<Record<string, string>> = {
  webhook_approved: "The service was asked, and approved.",
  webhook_declined: "The service was asked, and declined.",
  webhook_timeout:
    "The service was asked and did not answer within 2 seconds. Check that Stripe can reach the authorization URL.",
  webhook_error:
    "The answer was not understood. Check that the authorization URL in Stripe's Issuing settings is the one shown here, " +
    "and that its signing secret was pasted here.",
  card_active:
    "The service was not asked: Stripe approved by itself. Paste the authorization URL into Stripe's Issuing settings.",
  insufficient_funds:
    "The account's Issuing balance is too low. Add funds in Stripe; in test mode this is free.",
  spending_controls: "The limit of the card itself stopped it, before the service was asked.",
  cardholder_verification_required:
    "Stripe wants more about the cardholder. Open Issuing, Cardholders in Stripe's dashboard.",
  account_disabled: "Issuing is not active in this account. Finish its set-up in Stripe's dashboard.",
};

/** Explains the reason of a decision on an authorization. */
export const trialWords = (reason: string): string =>
  WORDS[reason] ?? (reason === "" ? "Stripe names no reason." : `Stripe says: ${reason}.`);
