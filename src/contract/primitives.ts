import { z } from "zod";
import { isAddress } from "../domain/address.ts";
import { MAX_CENTS } from "../domain/money.ts";
import { FOLDED_NAME_MAX, foldsShort } from "../domain/rules/compared-name.ts";
import { LOGO_DATA_URL, LOGO_DATA_URL_CHARACTERS_MAX, readLogo } from "./logo.ts";
import { referred } from "./reference.ts";

/** Building blocks of the contract's schemas. */

/** C0 and DEL, but tab and line ends: no text that people write, and six bytes each where it is kept. */
const CONTROLS = String.raw`\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f`;
const CONTROL = new RegExp(`[${CONTROLS}]`);

/** What `trim` takes away, spelt out for the reference: what \s is differs from one dialect of patterns to the next. */
const SPACES = String.raw` \t\n\r\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff`;

/** The same as a pattern: no control characters, and at least one that is no space where text is needed. */
const textPattern = (min: number): string =>
  min === 0 ? `^[^${CONTROLS}]*$` : `^[^${CONTROLS}]*[^${CONTROLS}${SPACES}][^${CONTROLS}]*$`;

/** Text of `min` to `max` characters (code points), not blank, without control characters and broken surrogates. */
export const text = (min: number, max: number) =>
  referred(
    z
      .string()
      .refine(
        (value) => value.isWellFormed() && !CONTROL.test(value),
        "must not hold control or broken characters",
      )
      .refine((value) => {
        const length = Array.from(value).length;
        return length >= min && length <= max && (min === 0 || value.trim() !== "");
      }, `must be ${min} to ${max} characters, not blank`)
      .meta({ minLength: min, maxLength: max }),
    { keywords: { pattern: textPattern(min) } },
  );

/** Who is paid, as a payment or a rule names them. */
export const recipientName = text(1, 200).refine(
  foldsShort,
  `must not become longer than ${FOLDED_NAME_MAX} when its compatibility forms are folded (NFKC)`,
);

export const name = text(1, 100);
export const description = text(0, 500);

/** An amount in cents, 0 or more. */
export const cents = z.int().min(0).max(MAX_CENTS).meta({ description: "Integer cents." });

/** What a wallet holds: anybody may send it money, so no bound of ours holds for it. */
export const heldCents = z.int().min(0).meta({ description: "Integer cents." });

/** Of what is replaced by its version. */
export const version = z
  .int()
  .meta({ description: "As it was read; any other than the current one is 409." });

/** What is paid: at least one cent. */
export const paymentCents = z.int().min(1).max(MAX_CENTS).meta({ description: "Integer cents, at least 1." });

/** A limit in payments. */
export const paymentCount = z.int().min(0).max(1_000_000_000);

/**
 * Read in any case (RFC 9562), and of whatever version: one that we never gave out is unknown (an empty list, 404), not
 * malformed.
 */
export const uuid = z
  .guid("must be an id as the service answers it, such as 01a2068b-40a6-73a5-aa10-002b054e3cb7")
  .toLowerCase();
export const timestamp = z.iso.datetime().meta({ description: "ISO 8601, UTC, milliseconds." });
export const idempotencyKey = text(1, 255).meta({
  description:
    "Made by the caller before the call: a new random value for each payment or create; the same one only to repeat it. " +
    "Agents and organization keys must give one; people may leave it out of a create.",
});

/** As zod's own, without its looks ahead, which not every reader of the reference knows. */
const EMAIL = String.raw`(?:[A-Za-z0-9_'+-]+\.)*[A-Za-z0-9_'+-]*[A-Za-z0-9_+-]@(?:[A-Za-z0-9][A-Za-z0-9-]*\.)+[A-Za-z]{2,}`;
const ONLY_EMAIL = new RegExp(`^${EMAIL}$`);

export const email = referred(
  text(1, 254).refine((value) => ONLY_EMAIL.test(value.trim()), "must be an e-mail address"),
  { keywords: { pattern: `^[${SPACES}]*${EMAIL}[${SPACES}]*$` } },
);

/** A password that somebody chooses; its strength is checked where it is set, since that takes a list. */
export const newPassword = referred(text(1, 1_024), {
  keywords: {
    minLength: 12,
    format: "password",
    description:
      "At least 12 characters, at most 1024 bytes, and hard to guess: a few unrelated words make a good one.",
  },
});

/** A single-use token out of a link. */
export const secretToken = text(1, 512);

/** Of a tile in the dashboard. */
export const color = z.string().regex(/^#[0-9a-fA-F]{6}$/, "must be a color like #1a2b3c");

/** What an agent is shown by: the name of an icon, or an emoji. */
export const icon = text(1, 64);

/** A gray one. */
const ONE_PIXEL =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg==";

export const logo = referred(
  z
    .string()
    .superRefine((dataUrl, check) => {
      const read = readLogo(dataUrl);
      if ("problem" in read) check.addIssue({ code: "custom", message: read.problem });
    })
    .meta({
      description:
        "A data URL of a PNG, JPEG or WebP image of at most 64 KiB and 4096 pixels a side. Records carry a link to it.",
      pattern: LOGO_DATA_URL.source,
      maxLength: LOGO_DATA_URL_CHARACTERS_MAX,
    }),
  {
    keywords: {
      format: "image-data-url",
      pattern: "^data:image/(png|jpeg|webp);base64,[A-Za-z0-9+/]+={0,2}$",
      examples: [ONE_PIXEL],
    },
  },
);

export const transactionId = z
  .string()
  .regex(
    /^txn_[0-9A-HJKMNP-TV-Z]{26}$/,
    "must be a transaction's id as a payment answers it: txn_ and 26 letters and digits",
  );
export const approvalId = z
  .string()
  .regex(
    /^apr_[0-9A-HJKMNP-TV-Z]{26}$/,
    "must be an approval's id as a payment on hold answers it: apr_ and 26 letters and digits",
  );

/** Narrows a list to one agent; both names are the same filter. */
export const agentFilter = {
  agentId: uuid.optional().meta({ description: "Only of this agent." }),
  agent_id: uuid.optional().meta({ description: "The same as agentId; send one." }),
};

interface AgentFilter {
  readonly agent_id?: string | undefined;
  readonly agentId?: string | undefined;
}

export const oneAgent = ({ agent_id, agentId }: AgentFilter): boolean =>
  agent_id === undefined || agentId === undefined || agent_id === agentId;
export const ONE_AGENT = { path: ["agentId"], error: "names another agent than agent_id" };

/** The agent that a list is narrowed to. */
export const agentIn = ({ agent_id, agentId }: AgentFilter): string | undefined => agent_id ?? agentId;

/** What a cursor is made of; a decoder would skip what is not. */
const CURSOR = "[A-Za-z0-9_-]";
const ONLY_CURSOR = new RegExp(`^${CURSOR}+$`);

/** Paging of every list: newest first, an opaque cursor bound to the list and its filters. */
export const paging = {
  limit: z.int().min(1).max(200).default(50).meta({ description: "Records in a page, 1 to 200." }),
  cursor: referred(z.string().max(1_000), { keywords: { format: "page-cursor", pattern: `^${CURSOR}+$` } })
    .refine((cursor) => ONLY_CURSOR.test(cursor))
    .optional()
    .meta({ description: "`nextCursor` of the previous page, with the same filters." }),
};
export const nextCursor = referred(z.string(), { keywords: { pattern: `^${CURSOR}+$` } })
  .nullable()
  .meta({ description: "Null on the last page." });

/**
 * Some of a few known values, none twice. The length is checked before the items: judging each entry of an array that fills a
 * body would take most of a second.
 */
export const choices = <const T extends readonly string[]>(values: T) =>
  z.preprocess(
    (given, check) => {
      if (!Array.isArray(given) || given.length <= values.length) return given;
      check.addIssue({ code: "custom", message: `must name at most ${values.length}, none twice` });
      return z.NEVER;
    },
    z
      .array(z.enum(values))
      .min(1)
      .refine((chosen) => new Set(chosen).size === chosen.length, "must not name one twice")
      .meta({ maxItems: values.length, uniqueItems: true }),
  );

/** An address on an EVM chain that money can go to. What is wrong with one is said alone: the one thing to mend. */
export const walletAddress = referred(
  z
    .string()
    .regex(/^0x[0-9a-fA-F]{40}$/, { error: "must be an address", abort: true })
    .refine(isAddress, { error: "must be all lower case or carry its checksum", abort: true })
    .refine((address) => !/^0x0{40}$/.test(address), "must not be the zero address"),
  {
    keywords: {
      format: "evm-address",
      pattern: "^0x(?!0{40}$)[0-9a-fA-F]{40}$",
      description:
        "An address on an EVM chain: all lower case, or with the checksum of ERC-55; not the zero address.",
    },
  },
);
