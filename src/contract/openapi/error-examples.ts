import { ERRORS, type ErrorCode, type Refusal } from "../../domain/errors.ts";
import { WAITS } from "./errors.ts";
import { ADDRESS, EXAMPLE_ID } from "./glossary/notes.ts";

/** Examples of the extra fields of some errors, by code. */

const MORE: Partial<
  Record<
    ErrorCode,
    Partial<Pick<Refusal, "challenge" | "issues" | "requiredScope" | "missing" | "unknown" | "organizations">>
  >
> = {
  VALIDATION_FAILED: { issues: [{ path: "amountCents", message: "Too small: expected number to be >=1" }] },
  WALLET_OWNER_UNPROVEN: {
    challenge: `The key of ${ADDRESS} is ours. It shall own the wallets of organization ${EXAMPLE_ID} on eip155:8453.`,
  },
  INSUFFICIENT_SCOPE: { requiredScope: "agents:write" },
  BUDGET_CHILDREN_INCOMPLETE: { missing: [EXAMPLE_ID] },
  ORGANIZATION_REQUIRED: { organizations: [{ id: EXAMPLE_ID, name: "Analytical Engines" }] },
  BUDGET_CHILD_UNKNOWN: { unknown: [EXAMPLE_ID] },
};

const SECONDS = 30;

export const errorExamples = (): Readonly<Record<string, { readonly value: object }>> =>
  Object.fromEntries(CODES.map((code) => [code, { value: exampleOfError(code) }]));

const CODES = Object.keys(ERRORS).filter((code): code is ErrorCode => code in ERRORS);

const exampleOfError = (code: ErrorCode): object => ({
  error: code,
  message: ERRORS[code].message,
  ...MORE[code],
  ...(WAITS.has(code) ? { retry_after_seconds: SECONDS } : {}),
  requestId: EXAMPLE_ID,
});
