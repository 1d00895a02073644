import { type Address, keccak256 } from "viem";
import type { Clock } from "../payments/ports.ts";
import type { AccessProofs } from "../secrets/access-proofs.ts";
import { caip2Of, type ChainConfig, type Fees, type Signer } from "./config.ts";
import { GAS } from "./contracts.ts";
import {
  type Call,
  type ChainTransactionDocument,
  type Entry,
  noTransaction,
  type RecordedTransaction,
  type Signing,
  type UnprovenTransaction,
} from "./recorded.ts";
import { signedCallIn } from "./signed-call.ts";

interface SigningDependencies {
  readonly config: ChainConfig;
  readonly signer: Signer;
  readonly clock: Clock;
  readonly proofs: Pick<AccessProofs, "proven">;
}

/** A call that only uses up its nonce. */
const nothingTo = (to: Address) => ({ to, data: "0x", gas: GAS.nothing }) as const;

/** Signs transactions with the service's key on one chain. They are recorded afterwards, and only then sent. */
export class ChainSigning {
  readonly #dependencies: SigningDependencies;
  readonly #chain: string;
  readonly #from: Address;

  constructor(dependencies: SigningDependencies) {
    this.#dependencies = dependencies;
    this.#chain = caip2Of(dependencies.config.chainId);
    this.#from = dependencies.signer.address;
  }

  /** Returns entries' documents; calls get nonces from `firstNonce` on. Without calls, fees may be null. */
  async documents(
    entries: readonly Entry[],
    fees: Fees | null,
    firstNonce: number,
  ): Promise<ChainTransactionDocument[]> {
    const { clock, config, proofs, signer } = this.#dependencies;
    const createdAt = clock();
    const common = { chain: this.#chain, from: this.#from, createdAt };
    const documents: UnprovenTransaction[] = [];
    let nonce = firstNonce;
    for (const entry of entries) {
      const own = { ...common, _id: `${this.#chain}/${entry.purpose}`, wallet: entry.wallet };
      if (entry.kind === "refusal") {
        documents.push({ ...own, ...noTransaction(), refusal: entry.refusal });
        continue;
      }
      if (fees === null) throw new Error("a call cannot be signed without fees");
      const { amountCents = 0, data, gas, isRepeated = false, limitVersion = null, to } = entry;
      const raw = await signer.sign({ chainId: config.chainId, nonce, to, data, gas, ...fees });
      const about = { amountCents, limitVersion, isRepeated, refusal: null };
      documents.push({ ...own, ...noTransaction(), ...about, nonce, hash: keccak256(raw), raw });
      nonce += 1;
    }
    return documents.map((document) => proofs.proven("chainTransaction", document));
  }

  /** Signs the same call under the same nonce for other fees. */
  async again(transaction: RecordedTransaction, fees: Fees): Promise<Signing> {
    return this.#signing(await this.callIn(transaction), transaction.nonce, fees);
  }

  /** Signs the no-op in place of a replaced transaction. */
  noop(nonce: number, fees: Fees): Promise<Signing> {
    return this.#signing(nothingTo(this.#from), nonce, fees);
  }

  /** Returns the entry that uses up a skipped nonce. */
  noopCall(nonce: number): Call {
    return { kind: "call", purpose: `noop/${String(nonce)}`, wallet: null, ...nothingTo(this.#from) };
  }

  /** Returns the call of a recorded transaction. Throws if this key has not signed it. */
  callIn(transaction: RecordedTransaction): Promise<Pick<Call, "to" | "data" | "gas">> {
    return signedCallIn(transaction, { from: this.#from, chainId: this.#dependencies.config.chainId });
  }

  async #signing(call: Pick<Call, "to" | "data" | "gas">, nonce: number, fees: Fees): Promise<Signing> {
    const { clock, config, signer } = this.#dependencies;
    const raw = await signer.sign({ chainId: config.chainId, nonce, ...call, ...fees });
    return { hash: keccak256(raw), raw, at: clock() };
  }
}
