import { createHmac } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Db } from "mongodb";
import { createTestClient, type Hex, http, parseEther, toHex } from "viem";
import { z } from "zod";
import { readChain } from "../../../server/chain.ts";
import { MasterKey } from "../../../src/secrets/master-key.ts";
import { Child } from "../child.ts";
import type { ServiceConfig } from "../processes/service.ts";
import { callTo } from "../systems/payments-agents.ts";
import { MASTER_KEY, portOf, serviceEnvironment, type Site } from "../systems/system.ts";

export const DATABASE = "bench_pending";
/** As a service in earnest has it on a chain with slow blocks. */
const CONFIRMATIONS = 12;
/** Long enough for all of them to be sent, and a phase to be measured, before the first has all its confirmations. */
const BLOCK_SECONDS = 30;
export const APPROVAL_WINDOW_SECONDS = 8;

const masterKey = MasterKey.parse(MASTER_KEY, "MASTER_KEY");

/** The service on the local chain: as its sandbox, where wallets are funded and deployed in no time, or as any other chain. */
export async function startPendingService(site: Site, on: "sandbox" | "chain", db: Db): Promise<Child> {
  const env = {
    ...serviceEnvironment(site, DATABASE),
    APPROVAL_WINDOW_SECONDS: String(APPROVAL_WINDOW_SECONDS),
    ...(on === "sandbox" ? {} : chainSettings(site, db)),
  };
  const logFile = join(site.dataDir, "logs", `pending-${on}.log`);
  const config: ServiceConfig = { env, logFile };
  return Child.start({ entry: "processes/payments.ts", config, profileDir: site.profileDir });
}

function chainSettings({ evmRpcUrl }: Site, db: Db): NodeJS.ProcessEnv {
  const { config } = readChain(evmRpcUrl, {}, masterKey, db);
  return {
    EVM_CHAIN_ID: String(config.chainId),
    EVM_TOKEN_ADDRESS: config.token,
    EVM_TOKEN_DECIMALS: String(config.tokenDecimals),
    EVM_SPENDER_KEY: spenderKey(db),
    EVM_CONFIRMATIONS: String(CONFIRMATIONS),
  };
}

/** The sandbox's, so that wallets which were deployed there have the same spender. */
const spenderKey = (db: Db): Hex =>
  toHex(createHmac("sha256", masterKey.deriveKey("chain-spender")).update(db.databaseName).digest());

/** The blocks of the local chain: one every so often, or as many at once as are asked for. */
export class Blocks {
  readonly #client;
  readonly #address;

  constructor({ evmRpcUrl }: Site, db: Db) {
    this.#client = createTestClient({ mode: "anvil", transport: http(evmRpcUrl) });
    this.#address = readChain(evmRpcUrl, {}, masterKey, db).signer.address;
  }

  async slow(): Promise<void> {
    await this.#client.setBalance({ address: this.#address, value: parseEther("1000") });
    await this.#client.setAutomine(false);
    await this.#client.setIntervalMining({ interval: BLOCK_SECONDS });
  }

  /** Everything that was sent has all its confirmations. */
  confirm(): Promise<void> {
    return this.#client.mine({ blocks: CONFIRMATIONS + 1 });
  }
}

const READY_MS = 60_000;
const answer = z.looseObject({});

/** Waits until every part of it can be used. */
export async function ready(child: Child): Promise<number> {
  const port = portOf(child.port);
  const until = performance.now() + READY_MS;
  for (;;) {
    try {
      answer.parse(await callTo(port, "GET", "/readyz", undefined, null));
      return port;
    } catch (error) {
      if (performance.now() > until) throw error;
      await sleep(100);
    }
  }
}
