import { readAmount, typedOf } from "./format.ts";
import type { Policy } from "./words.ts";

/** Fields of a budget policy, as typed. */
export const POLICY_FIELDS = [
  {
    name: "budgetCents",
    label: "Budget",
    kind: "amount",
    about: "The most that it may spend in total.",
    none: null,
  },
  {
    name: "autoApprovalThresholdCents",
    label: "Require approval above",
    kind: "amount",
    about: "0: every payment. Empty: never.",
    none: "Never",
  },
  {
    name: "perTransactionLimitCents",
    label: "Limit per payment",
    kind: "amount",
    about: null,
    none: "No limit",
  },
  {
    name: "dailySpendLimitCents",
    label: "Limit per day",
    kind: "amount",
    about: "Days end at midnight UTC.",
    none: "No limit",
  },
  {
    name: "hourlyVelocityLimit",
    label: "Payments per hour",
    kind: "count",
    about: null,
    none: "No limit",
  },
  { name: "dailyVelocityLimit", label: "Payments per day", kind: "count", about: null, none: "No limit" },
] as const;

export type PolicyField = (typeof POLICY_FIELDS)[number]["name"];
export type TypedPolicy = Readonly<Record<PolicyField, string>>;
export type PolicyValues = Pick<Policy, PolicyField>;

export const EMPTY_POLICY: TypedPolicy = {
  budgetCents: "",
  autoApprovalThresholdCents: "",
  perTransactionLimitCents: "",
  dailySpendLimitCents: "",
  hourlyVelocityLimit: "",
  dailyVelocityLimit: "",
};

const typed = (kind: "amount" | "count", value: number | null): string =>
  kind === "amount" ? typedOf(value) : value === null ? "" : String(value);

export const typedPolicy = (policy: PolicyValues): TypedPolicy => ({
  ...EMPTY_POLICY,
  ...Object.fromEntries(POLICY_FIELDS.map(({ kind, name }) => [name, typed(kind, policy[name])])),
});

type Read =
  | { readonly ok: true; readonly values: PolicyValues }
  | { readonly ok: false; readonly errors: Partial<Record<PolicyField, string>> };

/** Returns the typed policy, or its problems. An empty field clears a limit; a budget cannot be cleared. */
export function readPolicy(input: TypedPolicy): Read {
  const errors: Partial<Record<PolicyField, string>> = {};
  const read = (name: PolicyField, kind: "amount" | "count"): number | null => {
    const text = input[name].trim();
    if (text === "") return null;
    if (kind === "amount") {
      const amount = readAmount(text);
      if (amount.ok) return amount.cents;
      errors[name] = amount.problem;
      return null;
    }
    if (/^\d+$/.test(text)) return Number(text);
    errors[name] = "A whole number.";
    return null;
  };
  const values: PolicyValues = {
    budgetCents: read("budgetCents", "amount") ?? 0,
    autoApprovalThresholdCents: read("autoApprovalThresholdCents", "amount"),
    perTransactionLimitCents: read("perTransactionLimitCents", "amount"),
    dailySpendLimitCents: read("dailySpendLimitCents", "amount"),
    hourlyVelocityLimit: read("hourlyVelocityLimit", "count"),
    dailyVelocityLimit: read("dailyVelocityLimit", "count"),
  };
  if (input.budgetCents.trim() === "") errors.budgetCents = "A budget is needed; 0 stops every payment.";
  return Object.keys(errors).length > 0 ? { ok: false, errors } : { ok: true, values };
}
