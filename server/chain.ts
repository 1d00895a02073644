import { createHmac, type KeyObject } from "node:crypto";
import type { Db } from "mongodb";
import { type Address, getAddress, type Hex, isAddress, isHex, parseGwei, toHex } from "viem";
import { z } from "zod";
import type { ChainConfig, Signer } from "../src/chain/config.ts";
import { factoryDeployment } from "../src/chain/contracts.ts";
import { localSigner } from "../src/chain/signer.ts";
import { withNetwork } from "../src/chain/networks.ts";
import { sandboxConfig } from "../src/chain/sandbox.ts";
import { createWallets, type Wallets } from "../src/rails/wallet/index.ts";
import type { ChainRepair } from "../src/chain/repairs.ts";
import { ConfigError } from "../src/lib/config-error.ts";
import type { AuditLog } from "../src/audit/chain/appender.ts";
import { auditValue } from "../src/domain/audit/canonical.ts";
import type { AuditRecord } from "../src/domain/audit/entry.ts";
import type { TargetFunding } from "../src/rails/wallet/targets.ts";
import type { Logger } from "../src/lib/logger.ts";
import type { Metrics } from "../src/metrics/metrics.ts";
import { AccessProofs } from "../src/secrets/access-proofs.ts";
import { forgedRecordsLog } from "../src/secrets/forged-records-log.ts";
import { AgentProofs } from "../src/agents/agent-proofs.ts";
import { KeyedMacs } from "../src/secrets/keyed-macs.ts";
import type { MasterKey } from "../src/secrets/master-key.ts";

/** Length of a private key: 32 bytes in hex, after 0x. */
const PRIVATE_KEY_CHARACTERS = 66;
const CONFIRMATIONS_DEFAULT = 12;
const CONFIRMATIONS_MAX = 1_000;
const REMOTE_POLL_MS = 1_000;
const MAX_FEE_PER_GAS_GWEI_DEFAULT = 500;
const MAX_FEE_PER_GAS_GWEI_MAX = 1_000_000;
const POCKET_FLOAT_CENTS_MAX = 100_000;

const address = z
  .string()
  .refine((text) => isAddress(text), "must be an address")
  .transform((text): Address => getAddress(text));

/** Whether a key is valid. The library's error contains an out-of-range key and must not be logged. */
function isUsableKey(key: Hex): boolean {
  try {
    localSigner(key);
    return true;
  } catch {
    return false;
  }
}

/** Settings of wallets on a production chain. */
const production = z.object({
  EVM_RPC_FALLBACK_URL: z.url({ protocol: /^https?$/, error: "Invalid URL" }).optional(),
  EVM_CHAIN_ID: z.coerce.number().int().min(1),
  EVM_TOKEN_ADDRESS: address,
  EVM_TOKEN_DECIMALS: z.coerce.number().int().min(2).max(36),
  /** Default: the address at which `npm run admin -- deploy-wallet-factory` puts it, the same on every chain. */
  EVM_WALLET_FACTORY_ADDRESS: address.optional(),
  EVM_SPENDER_KEY: z
    .string()
    .refine(
      (text): text is Hex => isHex(text) && text.length === PRIVATE_KEY_CHARACTERS,
      "must be 32 bytes in hex, with 0x",
    )
    .refine(isUsableKey, "must be a private key"),
  EVM_CONFIRMATIONS: z.coerce.number().int().min(1).max(CONFIRMATIONS_MAX).default(CONFIRMATIONS_DEFAULT),
  /** Maximum fee offered, also after raises. Above it, payments wait until the chain's fees fall. */
  EVM_MAX_FEE_PER_GAS_GWEI: z.coerce
    .number()
    .int()
    .min(1)
    .max(MAX_FEE_PER_GAS_GWEI_MAX)
    .default(MAX_FEE_PER_GAS_GWEI_DEFAULT),
});

const pocket = z.object({
  /** Amount up to which an agent's pocket is filled. */
  POCKET_FLOAT_CENTS: z.coerce.number().int().min(1).max(POCKET_FLOAT_CENTS_MAX).default(500),
});

export interface ChainSettings {
  readonly config: ChainConfig;
  readonly signer: Signer;
  readonly pocketKey: KeyObject;
  readonly sandbox: boolean;
}

/**
 * Reads the chain's settings from the environment. Without a token address it is a sandbox: the service's key is
 * derived from the master key, and only a local test chain is accepted. Throws ConfigError, which never contains a
 * setting's value.
 */
export function readChain(
  rpcUrl: string,
  environment: NodeJS.ProcessEnv,
  masterKey: MasterKey,
  db: Db,
): ChainSettings {
  const env = withNetwork(environment);
  const pocketKey = masterKey.deriveFirst("pocket-keys");
  const { POCKET_FLOAT_CENTS: pocketFloatCents } = parsed(pocket, env);
  if (env["EVM_TOKEN_ADDRESS"] === undefined) {
    const signer = localSigner(sandboxKey(masterKey, db));
    return { config: sandboxConfig(rpcUrl, signer, pocketFloatCents), signer, pocketKey, sandbox: true };
  }
  const value = parsed(production, env);
  const config = {
    rpcUrl,
    fallbackRpcUrl: value.EVM_RPC_FALLBACK_URL ?? null,
    chainId: value.EVM_CHAIN_ID,
    token: value.EVM_TOKEN_ADDRESS,
    tokenDecimals: value.EVM_TOKEN_DECIMALS,
    factory: value.EVM_WALLET_FACTORY_ADDRESS ?? factoryDeployment().address,
    confirmations: value.EVM_CONFIRMATIONS,
    pollMs: REMOTE_POLL_MS,
    fixedFees: null,
    maxFeePerGas: parseGwei(String(value.EVM_MAX_FEE_PER_GAS_GWEI)),
    pocketFloatCents,
  };
  return { config, signer: localSigner(value.EVM_SPENDER_KEY), pocketKey, sandbox: false };
}

function parsed<T>(schema: z.ZodType<T>, env: NodeJS.ProcessEnv): T {
  const result = schema.safeParse(env);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new ConfigError(`${issue?.path.join(".") ?? "EVM_*"}: ${issue?.message ?? "is not usable"}`);
}

/**
 * Returns the sandbox's key, a separate one for each database. Services that share a chain must not share a key, since
 * each counts its own nonces.
 */
const sandboxKey = (masterKey: MasterKey, db: Db): Hex =>
  toHex(createHmac("sha256", masterKey.deriveFirst("chain-spender")).update(db.databaseName).digest());

export interface ChainOptions {
  /** Null if the wallet rail is not configured. */
  readonly rpcUrl: string | null;
  readonly env: NodeJS.ProcessEnv;
  readonly masterKey: MasterKey;
  readonly db: Db;
  readonly clock: () => Date;
  readonly logger: Logger;
  /** Null if this process exposes no metrics. */
  readonly metrics: Metrics | null;
  readonly auditLog: AuditLog;
}

/** Returns the process's wallets; null without a chain. Does not call the chain yet. */
export function openWallets({
  auditLog,
  clock,
  db,
  env,
  logger,
  masterKey,
  metrics,
  rpcUrl,
}: ChainOptions): Wallets | null {
  if (rpcUrl === null) return null;
  const settings = readChain(rpcUrl, env, masterKey, db);
  const { config } = settings;
  const onWarning = (message: string, details: Readonly<Record<string, unknown>>) =>
    logger.warn({ chain: config.chainId, ...details }, message);
  const onRepair = (what: ChainRepair, count: number) => metrics?.chainRepaired(what, count);
  const agentProofs = new AgentProofs(masterKey.macs("agent-proofs"));
  const wallets = createWallets({
    db,
    ...settings,
    accessProofs: new AccessProofs(masterKey.macs("access-proofs"), forgedRecordsLog(logger, metrics)),
    fundingMacs: new KeyedMacs(masterKey.deriveKeys("payment-proofs")),
    auditTarget: (funding) => auditLog.append(targetEntry(funding)),
    isAgentGenuine: (agent) => agentProofs.genuine(agent) !== null,
    clock,
    onWarning,
    onRepair,
  });
  metrics?.missingOnChainSince(() => wallets.oldestMissing(), clock);
  return wallets;
}

/** Audit entry of a funding that keeps a wallet at its target from the organization's treasury. */
const targetEntry = ({ amountCents, at, key, profile, targetCents }: TargetFunding): AuditRecord => ({
  organizationId: profile.organizationId,
  entryKey: key,
  at: at.getTime(),
  action: "fundAgent",
  actor: { type: "system", id: "target" },
  resource: { type: "agent", id: profile.agentId },
  from: null,
  result: { status: null, code: null },
  before: null,
  after: auditValue({ amountCents, walletTargetCents: targetCents }),
  decision: null,
});
