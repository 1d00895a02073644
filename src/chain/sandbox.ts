import { type Address, type Hex, numberToHex } from "viem";
import { z } from "zod";
import type { ChainConfig, Signer } from "./config.ts";
import { factoryDeployment, GAS, mintData, sandboxTokenDeployment } from "./contracts.ts";
import { type DeploymentDependencies, ensureDeployed } from "./deployments.ts";
import { type Call, isTransaction, type RecordedTransaction } from "./outbox.ts";
import { ChainUnreachable } from "./rpc.ts";
import { unitsOf } from "./units.ts";

/** Chain id reserved for local test chains. */
export const SANDBOX_CHAIN_ID = 31_337;
export const SANDBOX_TOKEN_DECIMALS = 6;

/**
 * The demo owner of every wallet on the local chain: the first account of the well-known test mnemonic ("test test …
 * junk"), whose key is public. So the tour needs no key, and its user can withdraw.
 */
export const DEMO_OWNER: Address = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";

/** Fees on a local chain: above its highest possible base fee, even if a fresh chain has to mine everything again. */
export const SANDBOX_FEES = { maxFeePerGas: 100_000_000_000n, maxPriorityFeePerGas: 0n } as const;

/** A million worthless ether. */
const GAS_MONEY = 10n ** 24n;
const MINING_TIMEOUT_MS = 4_000;

export interface SandboxDependencies extends DeploymentDependencies {
  readonly config: ChainConfig;
  readonly signer: Signer;
}

/** Functions of local test chains only: free gas, contracts deployed by the service, minted money. */
export class ChainSandbox {
  readonly #dependencies: SandboxDependencies;
  #prepared: Promise<void> | null = null;

  constructor(dependencies: SandboxDependencies) {
    this.#dependencies = dependencies;
  }

  /** Gives the service's key gas by setting its balance, so that no other key is needed. */
  async giveGas(): Promise<void> {
    const { config, signer } = this.#dependencies;
    await rpcCall(config.rpcUrl, "anvil_setBalance", [signer.address, numberToHex(GAS_MONEY)]);
  }

  /**
   * Makes the local chain mine again. anvil can hold back transactions for good that arrived out of nonce order, and
   * accepts them again only after its pool was emptied. In addition, another sender may have driven the base fee above
   * the fixed fees with full blocks; it never falls again while nothing is mined.
   */
  async unwedge(): Promise<void> {
    const { rpcUrl } = this.#dependencies.config;
    await rpcCall(rpcUrl, "anvil_dropAllTransactions", []);
    await rpcCall(rpcUrl, "anvil_setNextBlockBaseFeePerGas", [numberToHex(0n)]);
  }

  /** Mines an empty block: the chain's time is that of its newest block. */
  async mine(): Promise<void> {
    await rpcCall(this.#dependencies.config.rpcUrl, "anvil_mine", []);
  }

  /**
   * Deploys the factory and the test token if missing, and waits for them. Runs once; whatever a killed chain loses is
   * resent like everything else.
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
    // Recorded even if another sender deployed them: a fresh chain must be reproducible from the service's records
    // alone.
    const missing = await ensureDeployed(
      this.#dependencies,
      expected,
      MINING_TIMEOUT_MS,
      "also what is there",
    );
    if (missing.length > 0) throw new ChainUnreachable(`not on the local chain yet: ${missing.join(", ")}`);
  }

  /** Mints test money into a wallet. Resolves to the transaction once it is mined, or null if that takes longer. */
  async mint(id: string, wallet: Address, cents: number): Promise<RecordedTransaction | null> {
    const { broadcast, finality, outbox, config } = this.#dependencies;
    // Money minted before the token exists would be lost: a call to an empty address succeeds.
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
    const receipt = await finality.wait(recorded, MINING_TIMEOUT_MS);
    if (receipt?.succeeded === false) throw new Error("test money could not be minted");
    return receipt === null ? null : recorded;
  }
}

const answer = z.object({ error: z.object({ message: z.string() }).optional() });
const CALL_TIMEOUT_MS = 2_000;

/** Makes a call specific to local chains, which the client library does not know. */
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
    signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
  });
  return answer.parse(await response.json());
}

/** Returns the sandbox's configuration; its addresses follow from the service's key. */
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
