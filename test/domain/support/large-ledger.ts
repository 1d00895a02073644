import { mcOf } from "../../../src/domain/money.ts";
import { gzipSync } from "node:zlib";
import { Random } from "../../../lab/random.ts";
import { MAX_CENTS } from "../../../src/domain/money.ts";
import { packLedger } from "../../../src/domain/ledger/pack.ts";
import type { Ledger } from "../../../src/domain/ledger/state.ts";
import type { BudgetPolicy } from "../../../src/domain/ledger/policy.ts";
import type { PaymentRequest } from "../../../src/domain/ledger/payment.ts";

/** As the service compresses what goes through the engine. */
const LEVEL = 1;

export const packedBytes = (ledger: Ledger, now: number): number =>
  gzipSync(JSON.stringify(packLedger(ledger, now)), { level: LEVEL }).byteLength;

const HEX = "0123456789abcdef";
const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** Ids, hashes and texts as long as the service's, that no compression makes shorter than they are. */
export class Incompressible {
  readonly random: Random;

  constructor(seed: number) {
    this.random = new Random(seed);
  }

  #of(alphabet: string, length: number): string {
    let text = "";
    while (text.length < length) text += alphabet.charAt(this.random.between(0, alphabet.length - 1));
    return text;
  }

  uuid(): string {
    return [8, 4, 4, 4, 12].map((length) => this.#of(HEX, length)).join("-");
  }

  id(prefix: string): string {
    return `${prefix}_${this.#of(CROCKFORD, 26)}`;
  }

  hash(): string {
    return this.#of(BASE64URL, 22);
  }

  proof(): string {
    return this.#of(BASE64URL, 43);
  }

  /** So many UTF-16 units: of plain letters, of three bytes each, or of pairs that take four. */
  text(length: number, of: "letters" | "three bytes" | "pairs" = "three bytes"): string {
    if (of === "letters") return this.#of(BASE64URL, length);
    if (of === "three bytes")
      return String.fromCharCode(...Array.from({ length }, () => this.random.between(0x800, 0xd7ff)));
    const pairs = Array.from({ length: length / 2 }, () => this.random.between(0x10000, 0x10ffff));
    return String.fromCodePoint(...pairs);
  }

  policy(): BudgetPolicy {
    const cents = () => this.random.between(1, MAX_CENTS);
    return {
      budgetCents: MAX_CENTS - this.random.between(0, 1_000_000),
      autoApprovalThresholdCents: cents(),
      perTransactionLimitCents: cents(),
      dailySpendLimitCents: cents(),
      hourlyVelocityLimit: this.random.between(1_000, 1_000_000),
      dailyVelocityLimit: this.random.between(1_000, 1_000_000),
    };
  }

  request(amountCents: number, texts: Pick<PaymentRequest, "purpose" | "recipient">): PaymentRequest {
    return {
      transactionId: this.id("txn"),
      approvalId: this.id("apr"),
      keyHash: this.hash(),
      payloadHash: this.hash(),
      fingerprint: this.hash(),
      proof: this.proof(),
      rail: "wallet",
      amountMc: mcOf(amountCents),
      currency: "USD",
      merchantCategory: "5734",
      rulesVersions: { project: 1_000_000, team: 1_000_000, agent: null },
      ...texts,
    };
  }
}
