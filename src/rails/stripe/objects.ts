import { z } from "zod";

/** The parts of Stripe's objects that are read. Other fields are ignored: Stripe adds some at any time. */

const id = z.string().min(1);
/** Smallest units of a currency: cents. */
const amount = z.int();
/** Epoch seconds. */
const created = z.int().nonnegative();

/** A reference: an id, or the whole object if expanded. */
const reference = z.union([id, z.object({ id }).transform((object) => object.id)]);
const metadata = z.record(z.string(), z.string()).default({});

export const transactionObject = z.object({
  id,
  /** Change of the balance: negative for captures and reversed refunds. */
  amount,
  authorization: reference.nullish().transform((found) => found ?? null),
  card: reference,
  created,
  /** `capture`, `refund`; Stripe may add others. */
  type: z.string(),
  dispute: reference.nullish().transform((found) => found ?? null),
});
export type TransactionObject = z.output<typeof transactionObject>;

const merchantData = z.object({
  name: z.string().nullish(),
  category_code: z.string().nullish(),
  network_id: z.string().nullish(),
  country: z.string().nullish(),
});

export const authorizationObject = z.object({
  id,
  /** Excludes captures, if `captured` releases their hold; see `authorizedCents`. */
  amount,
  approved: z.boolean(),
  card: reference,
  created,
  /** `pending`, `closed`, `reversed`, `expired`. */
  status: z.string(),
  pending_request: z.object({ amount: amount.nonnegative(), currency: z.string() }).nullable().default(null),
  /** Decided requests, oldest first; each amount is the increase requested. */
  request_history: z.array(z.object({ amount, approved: z.boolean(), reason: z.string().default("") })),
  merchant_data: merchantData.default({}),
  transactions: z.array(transactionObject).default([]),
});
export type AuthorizationObject = z.output<typeof authorizationObject>;

export const disputeObject = z.object({
  id,
  amount,
  created,
  metadata,
  /** `unsubmitted`, `submitted`, `won`, `lost`, `expired`. */
  status: z.string(),
  transaction: reference,
  /** The dispute's credits, including those taken back. */
  balance_transactions: z
    .array(z.object({ amount, created }))
    .nullish()
    .transform((found) => found ?? []),
});
export type DisputeObject = z.output<typeof disputeObject>;

export const cardObject = z.object({ id, last4: z.string(), created, metadata, status: z.string() });
export type CardObject = z.output<typeof cardObject>;

const address = z.object({
  line1: z.string().min(1),
  city: z.string().min(1),
  postal_code: z.string().min(1),
  country: z.string().length(2),
  state: z.string().nullish(),
});
export type Address = z.output<typeof address>;
const addressIfWhole = address.nullish().catch(null);

export const accountObject = z.object({
  id,
  default_currency: z.string().nullish(),
  business_profile: z.object({ support_address: addressIfWhole }).nullish(),
  company: z.object({ address: addressIfWhole }).nullish(),
});
export type AccountObject = z.output<typeof accountObject>;

export const cardholderObject = z.object({ id, metadata });
export const endpointObject = z.object({
  id,
  metadata,
  status: z.string(),
  url: z.string(),
  secret: z.string().optional(),
});
export const ephemeralKeyObject = z.object({ secret: z.string().min(1), expires: created });
export const balanceObject = z.object({
  livemode: z.boolean(),
  issuing: z.object({ available: z.array(z.object({ amount, currency: z.string() })) }).nullish(),
});

export const topupObject = z.object({ id, amount: amount.nonnegative(), currency: z.string() });

export const eventObject = z.object({
  id,
  type: z.string(),
  created,
  /** The connected account; absent for events of the account itself. */
  account: z.string().nullable().default(null),
  data: z.object({ object: z.unknown() }),
});
export type EventObject = z.output<typeof eventObject>;

export const pageOf = <T extends z.ZodType>(item: T) =>
  z.object({ data: z.array(item), has_more: z.boolean() });

export const errorObject = z.object({
  error: z.object({ message: z.string().default(""), code: z.string().nullish() }),
});

/** Null if the body is not JSON. */
export function jsonOf(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    return null;
  }
}
