import { provenContainer } from "../../../src/store/level-records.ts";
import type { Db } from "mongodb";
import type { AgentDocument, TransactionDocument } from "../../../src/store/documents.ts";
import { accessProofsOf } from "../../../test/support/access-proofs.ts";
import { MASTER_KEY } from "../systems/system.ts";
import { MasterKey } from "../../../src/secrets/master-key.ts";
import { createIndexes } from "../../../src/store/indexes.ts";
import { PROJECTION_INDEXES } from "../../../src/store/projections.ts";
import { collectionsOf } from "../../../src/store/collections.ts";
import { searchWords } from "../../../src/domain/search-words.ts";
import { mcOf } from "../../../src/domain/money.ts";
import { newId, newUuid } from "../../../src/lib/ids.ts";
import type { DenialCode } from "../../../src/domain/ledger/policy.ts";
import type { TransactionStatus } from "../../../src/domain/ledger/payment.ts";
import { BUDGET_CENTS } from "../systems/system.ts";

/** An organization with many agents and their payments, as if they had been made: written straight into the database. */
export interface Seeding {
  /** A connection without operation timeouts. */
  readonly patient: Db;
  readonly organizationId: string;
  readonly rows: number;
  readonly agents: number;
  readonly onProgress: (rows: number) => void;
}

export interface Seeded {
  readonly projectIds: readonly string[];
  /** The team that a key is bound to, with its project and the agent that pays the most. */
  readonly small: { readonly projectId: string; readonly teamId: string; readonly agentId: string };
}

const PROJECTS = 4;
const TEAMS_IN_EACH = 5;
/** Of all agents; the rest is spread over the other teams. */
const SMALL_TEAM_SHARE = 0.06;
/** Of all payments: enough for a thousand pages of 50 in a million. */
const BUSIEST_AGENT_SHARE = 0.055;
const DAYS = 180;
const DAY_MS = 86_400_000;
const AT_ONCE = 5_000;
const SEED = 0x5eed;

const STATUSES: readonly (readonly [TransactionStatus, number])[] = [
  ["approved", 0.88],
  ["denied", 0.06],
  ["failed", 0.025],
  ["reversed", 0.015],
  ["expired", 0.01],
  ["pending", 0.01],
];
const WALLET_SHARE = 0.2;
const WALLET_RECIPIENT = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

/** Mulberry32: the same rows in each run, but for their ids and for when it runs. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface Placed {
  readonly _id: string;
  readonly projectId: string;
  readonly teamId: string;
}

/** Writes projects, teams, agents and payments. The first agents are the small team's, the first of them pays the most. */
export async function seedTransactions({
  agents: count,
  patient,
  onProgress,
  organizationId,
  rows,
}: Seeding): Promise<Seeded> {
  const collections = collectionsOf(patient);
  const now = new Date();
  const container = () => ({
    _id: newUuid(),
    organizationId,
    name: "Seeded",
    description: null,
    color: null,
    logoHash: null,
    createdAt: now,
    archivedAt: null,
    state: "active" as const,
  });
  const accessProofs = accessProofsOf(MasterKey.parse(MASTER_KEY, "the bench"));
  const projects = Array.from({ length: PROJECTS }, () =>
    provenContainer(accessProofs, "project", container()),
  );
  const teams = projects.flatMap(({ _id: projectId }) =>
    Array.from({ length: TEAMS_IN_EACH }, () =>
      provenContainer(accessProofs, "team", { ...container(), projectId }),
    ),
  );
  const small = Math.max(1, Math.round(count * SMALL_TEAM_SHARE));
  const agents = Array.from({ length: count }, (_each, index) => {
    const team = teams[index < small ? 0 : 1 + (index % (teams.length - 1))];
    if (team === undefined) throw new Error("there are teams");
    return agentRecord({ organizationId, projectId: team.projectId, teamId: team._id }, index, now);
  });
  await collections.projects.insertMany(projects);
  await collections.teams.insertMany(teams);
  await collections.agents.insertMany(agents);
  const random = randomFrom(SEED);
  // They are made at the end, of all there is, which takes a part of the time.
  await collections.transactions.dropIndexes();
  for (let written = 0; written < rows; written += AT_ONCE) {
    const batch = Array.from({ length: Math.min(AT_ONCE, rows - written) }, (_each, index) =>
      transactionRecord(organizationId, pick(agents, random), written + index, now, random),
    );
    await collections.transactions.insertMany(batch, {
      ordered: false,
      writeConcern: { w: 1, journal: false },
    });
    onProgress(written + batch.length);
  }
  await createIndexes(patient, ...PROJECTION_INDEXES);
  const [busiest] = agents;
  if (busiest === undefined) throw new Error("there are agents");
  const { _id: agentId, projectId, teamId } = busiest;
  return { projectIds: projects.map(({ _id }) => _id), small: { projectId, teamId, agentId } };
}

/** The busiest has its share; of the others the earlier ones pay more than the later ones. */
function pick(agents: readonly Placed[], random: () => number): Placed {
  const index = random() < BUSIEST_AGENT_SHARE ? 0 : Math.floor(agents.length * random() ** 1.3);
  const agent = agents[index];
  if (agent === undefined) throw new Error("no such agent");
  return agent;
}

function statusOf(share: number): TransactionStatus {
  let left = share;
  for (const [status, part] of STATUSES) {
    if (left < part) return status;
    left -= part;
  }
  return "approved";
}

const CODES: Partial<Record<TransactionStatus, DenialCode>> = {
  denied: "DAILY_SPEND_LIMIT_EXCEEDED",
  failed: "CARD_DECLINED",
  expired: "APPROVAL_EXPIRED",
};

/** A payment of some time in the last months, rather a recent one; ordinary texts, some of which need quotes in a file. */
export function transactionRecord(
  organizationId: string,
  { _id: agentId, projectId, teamId }: Placed,
  number: number,
  now: Date,
  random: () => number,
): TransactionDocument {
  const status = statusOf(random());
  const rail = random() < WALLET_SHARE ? "wallet" : "card";
  const createdAt = new Date(now.getTime() - Math.floor(random() ** 1.5 * DAYS * DAY_MS));
  const recipient =
    rail === "wallet" ? WALLET_RECIPIENT : `Merchant ${String(Math.floor(random() * 5_000))}, Inc.`;
  const denialCode = CODES[status] ?? null;
  const isFinal = denialCode !== null || status === "reversed";
  const amountCents = 1 + Math.floor(random() * 50_000);
  const purpose = `Order ${String(number)}: supplies for "project ${projectId.slice(-4)}", as agreed`;
  const onChainTxHash = rail === "wallet" && status === "approved" ? `0x${"ab".repeat(32)}` : null;
  return {
    _id: newId("txn"),
    organizationId,
    projectId,
    teamId,
    agentId,
    agentName: `Agent of ${teamId.slice(-4)}`,
    keyHash: `seeded-${String(number).padStart(16, "0")}`,
    payloadHash: "seeded",
    sequence: number,
    createdAt,
    recipient,
    comparedRecipient: recipient.toLowerCase(),
    words: searchWords({ amountCents, onChainTxHash, purpose, recipient }),
    merchantCategory: null,
    amountCents,
    amounts: { requestedCents: amountCents, authorizedCents: 0, capturedCents: 0, creditedCents: 0 },
    stage: null,
    breach: null,
    currency: "USD",
    rail,
    status,
    purpose,
    denialReason: denialCode === null ? null : "The payment would exceed a limit of the agent's policy.",
    denialCode,
    denialDetails: null,
    deniedAt: isFinal ? createdAt : null,
    feedback: null,
    onChainTxHash,
    chainCaip2: rail === "wallet" ? "eip155:31337" : null,
    approvalId: null,
    revision: 1,
    ledgerState: {
      phase: "done",
      day: createdAt.toISOString().slice(0, 10),
      policyVersion: 1,
      amountMc: mcOf(amountCents),
      books: null,
      booksProof: "",
      approvalId: newId("apr"),
      fingerprint: "seeded",
      proof: "seeded",
      rulesVersions: null,
    },
  };
}

export const agentRecord = (
  place: { readonly organizationId: string; readonly projectId: string; readonly teamId: string },
  index: number,
  now: Date,
): AgentDocument => ({
  _id: newUuid(),
  ...place,
  name: `Agent ${String(index)}`,
  description: null,
  scopes: null,
  lifecycle: index % 10 === 9 ? "archived" : "active",
  policy: {
    budgetCents: BUDGET_CENTS,
    autoApprovalThresholdCents: null,
    perTransactionLimitCents: null,
    dailySpendLimitCents: null,
    hourlyVelocityLimit: null,
    dailyVelocityLimit: null,
  },
  policyVersion: 1,
  spentCents: 0,
  reservedCents: 0,
  wallet: null,
  key: null,
  createdBy: { type: "user", id: "bench" },
  createdByLineage: null,
  createdAt: now,
  proof: "",
  updatedAt: now,
  archivedAt: null,
  walletDetached: false,
  revision: 1,
  accountRevision: 1,
  accountStatus: "active",
  accountProof: "",
});
