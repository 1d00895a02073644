import { type Address, type Hex, numberToHex } from "viem";
import { z } from "zod";
import type { ChainConfig, Signer } from "./config.ts";
import { factoryDeployment, GAS, mintData, sandboxTokenDeployment } from "./contracts.ts";
import { type DeploymentDependencies, ensureDeployed } from "./deployments.ts";
import { type Call, isTransaction, type RecordedTransaction } from "./outbox.ts";
import { ChainUnreachable } from "./rpc.ts";
import { unitsOf } from "./units.ts";

/** The chain id of a local test chain, and of nothing else. */
export const SANDBOX_CHAIN_ID = 31_337;
export const SANDBOX_TOKEN_DECIMALS = 6;

/**
 * The demo owner of every wallet on the local chain: the first account of the well-known test mnemonic ("test test … junk"),
 * whose key is public. So the tour needs no key, and its user can withdraw.
 */
export const DEMO_OWNER: Address = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";

/** Fees on a local chain: above what its base fee can be, also where a fresh one has to mine all of it again. */
export const SANDBOX_FEES = { maxFeePerGas: 100_000_000_000n, maxPriorityFeePerGas: 0n } as const;

/** A million ether, of no worth. */
const GAS_MONEY = 10n ** 24n;
const MINED_MS = 4_000;

export interface SandboxDependencies extends DeploymentDependencies {
  readonly config: ChainConfig;
  readonly signer: Signer;
}

/** Functions of a local test chain alone: free gas, contracts deployed by the service, minted money. */
export class ChainSandbox {
  readonly #dependencies: SandboxDependencies;
  #prepared: Promise<void> | null = null;

  constructor(dependencies: SandboxDependencies) {
    this.#dependencies = dependencies;
  }

  /** Gives the service's key gas. The balance is set, not sent: no other key is needed. */
  async giveGas(): Promise<void> {
    const { config, signer } = this.#dependencies;
    await rpcCall(config.rpcUrl, "anvil_setBalance", [signer.address, numberToHex(GAS_MONEY)]);
  }

  /**
   * Makes the local chain mine again. anvil can hold transactions back for good that reached it in another order than that of
   * their nonces, and accepts them again only when its pool was emptied. And another sender may have driven its base fee above our
   * fixed fees, as long as it takes full blocks: where nothing is mined it never falls again.
   */
  async unwedge(): Promise<void> {
    const { rpcUrl } = this.#dependencies.config;
    await rpcCall(rpcUrl, "anvil_dropAllTransactions", []);
    await rpcCall(rpcUrl, "anvil_setNextBlockBaseFeePerGas", [numberToHex(0n)]);
  }

  /** Mines a block, though nothing waits for one: the chain's time is that of its newest block. */
  async mine(): Promise<void> {
    await rpcCall(this.#dependencies.config.rpcUrl, "anvil_mine", []);
  }

  /**
   * Deploys the factory and the test token where they are missing, and waits until they are there. Done once; what a
   * killed chain has lost is sent again like everything else.
   */
  prepare(): Promise<void> {
    this.#prepared ??= this.#prepare().catch((error: unknown) => {
      this.#prepared = null;
      throw error;
    });
    return this.#prepared;
  }

  async #prepare(): Promise<void> {
    const { rpc, signer } = this.#dependencies;
    await rpc.check();
    await this.giveGas();
    const expected = { factory: factoryDeployment(), token: sandboxTokenDeployment(signer.address) };
    // Recorded even where another sender has made them: from our records alone a fresh chain must become
    // what the killed one was.
    const missing = await ensureDeployed(this.#dependencies, expected, MINED_MS, "also what is there");
    if (missing.length > 0) throw new ChainUnreachable(`not on the local chain yet: ${missing.join(", ")}`);
  }

  /** Makes test money in a wallet. Answers the transaction once it is mined, null when that takes longer. */
  async mint(id: string, wallet: Address, cents: number): Promise<RecordedTransaction | null> {
    const { broadcast, finality, outbox, config } = this.#dependencies;
    // Minted before the token is there, the money would be lost: a call to an empty address succeeds.
    await this.prepare();
    const purpose = `mint/${id}`;
    const data = mintData(wallet, unitsOf(cents, config.tokenDecimals));
    const call: Call = {
      kind: "call",
      purpose,
      wallet,
      to: config.token,
      data,
      gas: GAS.mint,
      amountCents: -cents,
      isRepeated: true,
    };
    const recorded = (await outbox.record([call])).get(purpose);
    if (recorded === undefined || !isTransaction(recorded)) throw new Error(`${purpose} was not recorded`);
    await broadcast([recorded]);
    const receipt = await finality.wait(recorded, MINED_MS);
    if (receipt?.succeeded === false) throw new Error("test money could not be minted");
    return receipt === null ? null : recorded;
  }
}

const answer = z.object({ error: z.object({ message: z.string() }).optional() });
const CALL_MS = 2_000;

/** A call of the local chain's own, which the client library knows nothing of. */
async function rpcCall(url: string, method: string, params: readonly Hex[]): Promise<void> {
  const response = await answerTo(url, method, params).catch(() => null);
  if (response === null) throw new ChainUnreachable(`the chain did not answer ${method}`);
  if (response.error !== undefined)
    throw new ChainUnreachable(`${method}: ${response.error.message.slice(0, 200)}`);
}

async function answerTo(url: string, method: string, params: readonly Hex[]) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
    signal: AbortSignal.timeout(CALL_MS),
  });
  return answer.parse(await response.json());
}

/** The sandbox's place: its addresses follow from the service's key. */
export const sandboxConfig = (rpcUrl: string, signer: Signer, pocketFloatCents: number): ChainConfig => ({
  pocketFloatCents,
  rpcUrl,
  fallbackRpcUrl: null,
  chainId: SANDBOX_CHAIN_ID,
  token: sandboxTokenDeployment(signer.address).address,
  tokenDecimals: SANDBOX_TOKEN_DECIMALS,
  factory: factoryDeployment().address,
  confirmations: 1,
  pollMs: 25,
  fixedFees: SANDBOX_FEES,
  maxFeePerGas: SANDBOX_FEES.maxFeePerGas,
});
