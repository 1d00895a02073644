import {
  type OnChain,
  type PaymentRequest,
  type PaymentTexts,
  type RailOutcome,
  RAIL_FAILURE_CODES,
  RAILS,
  type Resolver,
  type RulesVersions,
} from "../../domain/ledger/payment.ts";
import { MAX_CENTS } from "../../domain/money.ts";
import {
  type Guard,
  isAtMost,
  isCount,
  isFlag,
  isId,
  isOneOf,
  isRecord,
  isText,
  isVariant,
  optional,
  orNull,
  type Shape,
} from "./guards.ts";

/** Payments, as they go through Temporal. The lengths are those of the contract, or longer than any text of ours. */

const NAME_CHARACTERS_MAX = 300;
const REASON_CHARACTERS_MAX = 2_000;
const RECIPIENT_CHARACTERS_MAX = 200;
const PURPOSE_CHARACTERS_MAX = 500;
const FEEDBACK_CHARACTERS_MAX = 1_000;

const isRail = isOneOf(RAILS);
const isReason = isText(REASON_CHARACTERS_MAX);
const isShort = isText(100);

export const isCents = isAtMost(MAX_CENTS);
export const isName = isText(NAME_CHARACTERS_MAX);
export const isFeedback = isText(FEEDBACK_CHARACTERS_MAX);
export const isProof = isText(100);

export const isResolver = isRecord<Resolver>({ userId: isId, name: isName });

const texts: Shape<PaymentTexts> = {
  recipient: isText(RECIPIENT_CHARACTERS_MAX),
  purpose: isText(PURPOSE_CHARACTERS_MAX),
};

export const isRequest = isRecord<PaymentRequest>({
  transactionId: isId,
  approvalId: isId,
  keyHash: isId,
  payloadHash: isId,
  rail: isRail,
  amountCents: isCents,
  currency: isOneOf(["USD"]),
  ...texts,
  merchantCategory: orNull(isShort),
  fingerprint: isId,
  proof: isProof,
  rulesVersions: optional(isRecord<RulesVersions>({ project: orNull(isCount), team: orNull(isCount) })),
});

const onChain = optional(isRecord<OnChain>({ txHash: isShort, chainCaip2: isShort }));

export const isRailOutcome: Guard<RailOutcome> = isVariant<RailOutcome, "status">("status", {
  settled: { final: isFlag, onChain },
  pending: { onChain },
  failed: { onChain, code: isOneOf(RAIL_FAILURE_CODES), reason: isReason },
  reversed: {},
  withheld: {},
});
