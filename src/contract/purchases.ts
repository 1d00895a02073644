import { z } from "zod";
import { approval, raise, exactAmount, protocol, transaction } from "./records.ts";
import { idempotencyKey, paymentCents, text } from "./primitives.ts";

/** Purchases from shops on the web that ask for payment with HTTP 402. */

export const SHOP_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;

const HEADERS_MAX = 50;
/** Maximum UTF-16 code units of a request's body, and of all its headers. */
const BODY_CHARACTERS_MAX = 200_000;
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/;
const HEADER_VALUE = /^[\t\x20-\x7e]{0,4000}$/;
/** Payment headers, which only the service sets. */
const OF_PAYMENT: ReadonlySet<string> = new Set(["payment-signature", "x-payment"]);

const URL_CHARACTERS_MAX = 2_048;
const isShort = (value: string): boolean =>
  !URL.canParse(value) || new URL(value).href.length <= URL_CHARACTERS_MAX;
export const shopUrl = text(1, URL_CHARACTERS_MAX)
  .refine(isShort, "must be shorter: its characters outside ASCII are encoded")
  .meta({
    description: "The URL: https on port 443 or 8443, without user, password and fragment.",
  });
export const shopMethod = z.enum(SHOP_METHODS).default("GET");

const headers = z
  .record(
    z.string().regex(HEADER_NAME, "must be header names"),
    z.string().regex(HEADER_VALUE, "must be header values in ASCII, of at most 4,000 characters"),
  )
  .refine((value) => Object.keys(value).length <= HEADERS_MAX, `must have at most ${String(HEADERS_MAX)}`)
  .refine(
    (value) => Object.keys(value).every((name) => !OF_PAYMENT.has(name.toLowerCase())),
    "must not name a payment: the service makes it",
  )
  .default({});

export const purchase = z.strictObject({
  url: shopUrl,
  method: shopMethod,
  headers: headers.meta({ description: "Headers of the request, by name." }),
  body: z
    .string()
    .max(BODY_CHARACTERS_MAX)
    .refine(
      (value) => value.isWellFormed() && !value.includes("\0"),
      "must not hold NUL or broken characters",
    )
    .optional()
    .meta({ description: "The request's body, sent as it is, in UTF-8." }),
  maxAmountCents: paymentCents.meta({ description: "The most that may be paid for it, in cents." }),
  purpose: text(1, 500).meta({
    description: "Why the agent pays; people who decide approvals read it.",
  }),
  idempotencyKey,
});

export const purchased = z.strictObject({
  httpStatus: z.int().meta({
    description:
      "The shop's status; 402 where it has not delivered: nothing is paid yet, or it did not answer.",
  }),
  headers: z.record(z.string(), z.string()),
  body: z
    .string()
    .nullable()
    .meta({ description: "The shop's body, at most 256 KiB; null: it has not delivered." }),
  bodyEncoding: z
    .enum(["utf8", "base64"])
    .meta({ description: "`base64`: the body is no UTF-8, and is written so." }),
  isTruncated: z.boolean().meta({ description: "Whether the body was longer, or broke off." }),
  transaction: transaction.nullable().meta({ description: "Null: it was free, and nothing was decided." }),
  approval: approval.nullable(),
  approvalUrl: z.string().nullable(),
  raise,
  replayed: z.boolean(),
  possibleDuplicateOf: z.string().nullable(),
  message: z.string().optional(),
});

/** A shop's offer, found by a dry run. */
export const checkedOffer = z.strictObject({
  httpStatus: z.int().meta({ description: "The shop's status without payment; 402: it asks for payment." }),
  protocol: protocol.nullable().meta({ description: "The protocol of the offer; null: it is free." }),
  recipient: z.string().nullable().meta({ description: "Who would be paid; null: nobody." }),
  amount: exactAmount,
});
