import type { KeyObject } from "node:crypto";
import type { Db } from "mongodb";
import { recordRoot, type RootTransaction } from "../../chain/audit-roots.ts";
import { caip2Of, type ChainConfig, type Signer } from "../../chain/config.ts";
import { factoryDeployment } from "../../chain/contracts.ts";
import { ensureDeployed } from "../../chain/deployments.ts";
import { DepositWatch } from "../../chain/deposits.ts";
import { FeeRaising } from "../../chain/fee-raising.ts";
import { Finality } from "../../chain/finality.ts";
import { Keeper } from "../../chain/keeper.ts";
import { CHAIN_INDEXES, ChainOutbox, isTransaction, type Recorded } from "../../chain/outbox.ts";
import type { ChainWatchers } from "../../chain/repairs.ts";
import { ChainRpc, WrongChain } from "../../chain/rpc.ts";
import { ChainSandbox, DEMO_OWNER } from "../../chain/sandbox.ts";
import { ForeignNonces } from "../../chain/foreign-nonces.ts";
import type { KeyedMacs } from "../../secrets/keyed-macs.ts";
import type { AgentDocument, WalletRecord } from "../../store/documents.ts";
import type { AccessProofs } from "../../secrets/access-proofs.ts";
import { EventJournal } from "../../store/journal.ts";
import type { Clock } from "../../payments/ports.ts";
import { AgentPockets } from "../pocket/agent-pockets.ts";
import { AuthorizationRecords } from "../pocket/authorizations.ts";
import { PocketKeys } from "../pocket/pocket-keys.ts";
import type { Pockets } from "../pocket/pocket.ts";
import { PocketRecords } from "../pocket/reservations.ts";
import { TokenDomains } from "../pocket/token-domain.ts";
import { Fundings } from "./fundings.ts";
import { WalletLimits } from "./limits.ts";
import { type TargetDependencies, WalletTargets } from "./targets.ts";
import { Treasuries } from "./treasuries.ts";
import { WalletRail } from "./wallet-rail.ts";
import { AgentWallets, newWallet } from "./wallets.ts";
import { createIndexes } from "../../store/indexes.ts";

/** Interval of the keeper's rounds, in polls of the chain. */
const POLLS_PER_ROUND = 20;
const ROUND_INTERVAL_MAX_MS = 15_000;
/** Rounds without being mined before a transaction's fee is raised: a minute on a remote chain. */
const ROUNDS_BEFORE_RAISE = 4;

export interface WalletsOptions {
  readonly db: Db;
  /** Proofs of what the rail records, and of the events of deposits. */
  readonly accessProofs: Pick<AccessProofs, "changed" | "genuine" | "make" | "proven">;
  readonly config: ChainConfig;
  readonly signer: Signer;
  /** Sub-key from which the keys of agents' pockets are derived. */
  readonly pocketKey: KeyObject;
  /** MACs over the instructions that move treasuries' money. */
  readonly fundingMacs: KeyedMacs;
  /** Writes the audit entry of a funding that keeps a wallet at its target, once per key. */
  readonly auditTarget: TargetDependencies["audit"];
  /** Whether an agent's record is unchanged since the service wrote it. */
  readonly isAgentGenuine: (agent: AgentDocument) => boolean;
  /** Whether the chain is a local test chain, where gas, contracts and money are created as needed. */
  readonly sandbox: boolean;
  readonly clock: Clock;
  readonly onWarning: ChainWatchers["onWarning"];
  readonly onRepair?: ChainWatchers["onRepair"];
}

export interface Wallets {
  readonly rail: WalletRail;
  readonly pockets: Pockets;
  readonly fundings: Fundings;
  readonly targets: WalletTargets;
  readonly limits: WalletLimits;
  /** Null unless the chain is a test chain. */
  readonly sandbox: ChainSandbox | null;
  readonly config: ChainConfig;
  readonly rpc: ChainRpc;
  /** Returns the wallet that an agent will have for good; sends nothing. */
  newWallet(agentId: string, owner: string): WalletRecord;
  /** Owner of wallets if the organization has named none: the demo owner on a test chain, else null. */
  readonly defaultOwner: string | null;
  /** The organizations' treasuries: the only source for every reader and payer. */
  readonly treasuries: Treasuries;
  readonly deposits: DepositWatch;
  /** Records an audit anchor's root on the chain, once per root. */
  recordRoot(root: string): Promise<RootTransaction>;
  /** Deploys the wallets' factory if the chain has none. Returns its address, and whether it is there in time. */
  deployFactory(withinMs: number): Promise<{ readonly address: string; readonly isDeployed: boolean }>;
  /**
   * Starts the keeper's rounds; throws `WrongChain` if another chain answers. On a test chain, prepares its gas and
   * contracts, unless the chain does not answer.
   */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Time at which the oldest missing transaction was recorded, as of the last round; null if none is missing. */
  oldestMissing(): Date | null;
}

/** Assembles the wallet rail without calling the chain. */
export function createWallets(options: WalletsOptions): Wallets {
  const { accessProofs: proofs, clock, db, onRepair = nothing, onWarning, config, signer } = options;
  const watchers = { onRepair, onWarning };
  const rpc = new ChainRpc(config, watchers);
  const outbox = new ChainOutbox({ db, config, rpc, signer, clock, proofs });
  const finality = new Finality({
    rpc,
    from: signer.address,
    pollMs: config.pollMs,
    confirmations: config.confirmations,
  });
  const wallets = new AgentWallets(db, options.isAgentGenuine);
  const broadcast = serialized(async (recorded) => {
    const inOrder = [...recorded].filter(isTransaction).toSorted((one, other) => one.nonce - other.nonce);
    await rpc.sendAll(inOrder.map(({ raw }) => raw));
  });
  const limits = new WalletLimits({ outbox, config, wallets, finality, clock, broadcast, onWarning });
  const foreignNonces = new ForeignNonces({
    db,
    rpc,
    outbox,
    from: signer.address,
    chainCaip2: caip2Of(config.chainId),
    clock,
    ...watchers,
    async onReplaced(transaction) {
      if (transaction.isRepeated) await broadcast([await outbox.repeat(transaction)]);
      await limits.setAgainAfter(transaction);
    },
  });
  const rail = new WalletRail({
    outbox,
    config,
    rpc,
    signer,
    limits,
    broadcast,
    wallets,
    finality,
    foreignNonces,
    onWarning,
    pocket: {
      close: (agentId) => pockets.close(agentId),
      unitsIn: (agentId) => pockets.unitsIn(agentId),
    },
  });
  const chain = caip2Of(config.chainId);
  const sandbox = options.sandbox
    ? new ChainSandbox({ config, rpc, outbox, finality, signer, broadcast })
    : null;
  const pockets = new AgentPockets({
    keys: new PocketKeys(options.pocketKey),
    domains: new TokenDomains(rpc, config),
    records: new PocketRecords(db, chain, clock),
    authorizations: new AuthorizationRecords(db, chain, clock, proofs),
    rail,
    wallets,
    outbox,
    finality,
    rpc,
    config,
    clock,
    broadcast,
    mine: sandbox === null ? null : () => sandbox.mine(),
  });
  const everyMs = Math.min(ROUND_INTERVAL_MAX_MS, config.pollMs * POLLS_PER_ROUND);
  const keeper = new Keeper({
    rpc,
    outbox,
    foreignNonces,
    raising: new FeeRaising({
      config,
      rpc,
      outbox,
      clock,
      raiseAfterMs: everyMs * ROUNDS_BEFORE_RAISE,
      ...watchers,
    }),
    from: signer.address,
    everyMs,
    resendAfterMs: everyMs * 2,
    clock,
    // A chain that was killed has lost its gas along with its blocks.
    beforeResending: async () => sandbox?.giveGas(),
    onEveryRound: async () => {
      await Promise.all([sandbox?.prepare(), rpc.endpoints.compare()]);
    },
    whileKeepingUp: async (stopping) => {
      await limits.setDue(stopping);
      await fundings.sweep(stopping);
      await targets.keep(stopping);
    },
    unwedge: async () => sandbox?.unwedge(),
    ...watchers,
  });
  const addressOf = (id: string, owner: string) => newWallet(config, signer.address, owner, id);
  const defaultOwner = sandbox === null ? null : DEMO_OWNER;
  const treasuries = new Treasuries({
    db,
    config,
    newWallet: addressOf,
    defaultOwner,
    proofs,
    beforeFirstUse: () => deposits.begin(),
  });
  const journal = new EventJournal(db, proofs);
  const fundings = new Fundings({
    db,
    rail,
    wallets,
    treasuries,
    journal,
    macs: options.fundingMacs,
    clock,
    chain,
    onWarning,
  });
  const targets = new WalletTargets({
    db,
    fundings,
    wallets,
    rpc,
    tokenDecimals: config.tokenDecimals,
    macs: options.fundingMacs,
    clock,
    audit: options.auditTarget,
    onWarning,
  });
  const deposits = new DepositWatch({
    db,
    config,
    rpc,
    clock,
    treasuries,
    journal,
    beginsAt: sandbox === null ? "the newest final block" : "the first block",
  });
  return {
    rail,
    pockets,
    fundings,
    targets,
    limits,
    sandbox,
    config,
    rpc,
    treasuries,
    deposits,
    newWallet: addressOf,
    defaultOwner,
    recordRoot: (root) => recordRoot({ outbox, config, broadcast, from: signer.address }, root),
    async deployFactory(withinMs) {
      await createIndexes(db, CHAIN_INDEXES);
      await rpc.check();
      // An earlier deployment may have been replaced.
      await foreignNonces.look();
      const factory = factoryDeployment();
      const missing = await ensureDeployed({ rpc, outbox, finality, broadcast }, { factory }, withinMs);
      return { address: factory.address, isDeployed: missing.length === 0 };
    },
    async start() {
      await (sandbox?.prepare() ?? rpc.check()).catch((error: unknown) => {
        // Money sent to a sandbox's addresses on another chain would be lost.
        if (error instanceof WrongChain) throw error;
        onWarning("the chain is not ready yet", { error: error instanceof Error ? error.message : "" });
      });
      keeper.start();
    },
    stop: () => keeper.stop(),
    oldestMissing: () => keeper.oldestMissing,
  };
}

const nothing = (): void => undefined;

type Broadcast = (recorded: Iterable<Recorded>) => Promise<void>;

/** Sends one batch after another, so that transactions reach the chain in nonce order. */
function serialized(send: Broadcast): Broadcast {
  let turn = Promise.resolve();
  return (recorded) => (turn = turn.then(() => send(recorded)));
}
