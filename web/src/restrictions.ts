import type { Output } from "../../src/client/types.ts";
import { RAILS } from "./rails.ts";

const OR = new Intl.ListFormat(undefined, { type: "disjunction" });

/** Returns the effects of restrictions as sentences, or one that says there are none. */
export function restrictionSentences(
  { merchantCategories, rails, recipients }: Output<"getTeamRestrictions">,
  categoryNamed: (code: string) => string,
): readonly string[] {
  const named = (codes: readonly string[]): string[] => codes.map(categoryNamed);
  const sentences: string[] = [];
  if (rails.only !== null)
    sentences.push(
      `Only payments by ${OR.format(rails.only.map((rail) => RAILS[rail].label.toLowerCase()))}.`,
    );
  if (recipients.only !== null) sentences.push(`Only payments to ${OR.format(recipients.only)}.`);
  if (recipients.never.length > 0) sentences.push(`Never payments to ${OR.format(recipients.never)}.`);
  if (merchantCategories.only !== null)
    sentences.push(`Only payments of category ${OR.format(named(merchantCategories.only))}.`);
  if (merchantCategories.never.length > 0)
    sentences.push(`Never payments of category ${OR.format(named(merchantCategories.never))}.`);
  if (merchantCategories.uncoded === "deny")
    sentences.push("Never payments without a category, those from wallets included.");
  return sentences.length === 0 ? ["No payment is denied by them."] : sentences;
}
