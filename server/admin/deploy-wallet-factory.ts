import { openWallets } from "../chain.ts";
import { readConfig } from "../config.ts";
import { AuditAppender } from "../../src/audit/chain/appender.ts";
import { auditSeal } from "../../src/audit/chain/seal.ts";
import { createLogger } from "../../src/lib/logger.ts";
import { loadMasterKey } from "../../src/secrets/load-master-key.ts";
import { recordCommand } from "./record-command.ts";
import { AdminError, connected } from "./connecting.ts";

/** Timeout for the chain's confirmation. A repeated command continues to wait. */
const CONFIRMATION_TIMEOUT_MS = 300_000;

const now = (): Date => new Date();

/**
 * `deploy-wallet-factory`: deploys the contract that creates agents' wallets on the chain of `EVM_RPC_URL`. Uses the
 * service's key and record of transactions, so it may run beside the service. Sends nothing if the contract is already
 * there, whoever deployed it: its address is the same on every chain.
 */
export const deployWalletFactory = (env: NodeJS.ProcessEnv): Promise<{ readonly factory: string }> =>
  connected(env, async ({ addresses, db }) => {
    const { dataDir, logLevel, masterKey: setting } = readConfig(env, "127.0.0.1");
    const isEmbedded = env["MONGODB_URI"] === undefined;
    const masterKey = await loadMasterKey({ setting, embeddedDataDir: isEmbedded ? dataDir : null });
    const logger = createLogger({ level: logLevel, file: null });
    const wallets = openWallets({
      rpcUrl: addresses.evmRpcUrl,
      env,
      masterKey,
      db,
      clock: now,
      logger,
      metrics: null,
      auditLog: new AuditAppender(db, auditSeal(masterKey.deriveKeys("audit-log"))),
    });
    if (wallets === null) throw new AdminError("Set EVM_RPC_URL to the chain's JSON-RPC endpoint.");
    const { address, isDeployed } = await wallets.deployFactory(CONFIRMATION_TIMEOUT_MS);
    if (isDeployed) {
      await recordCommand(db, masterKey, {
        via: "deploy-wallet-factory",
        action: "deployWalletFactory",
        resource: { type: "wallet_factory", id: null },
        after: { factory: address },
      });
      return { factory: address };
    }
    const seconds = CONFIRMATION_TIMEOUT_MS / 1_000;
    throw new AdminError(
      `The factory is not on the chain after ${seconds} s; does the service's key have gas? Repeat the command to keep waiting.`,
    );
  });
