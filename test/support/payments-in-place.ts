import { storedAmounts } from "../../src/domain/ledger/recorded-amounts.ts";
import { capturedInFull, NO_BOOKS } from "../../src/domain/ledger/books.ts";
import { stageOf } from "../../src/domain/ledger/payment.ts";
import { amountsOf } from "../../src/domain/ledger/amounts.ts";
import { mcOf } from "../../src/domain/money.ts";
import { randomUUID } from "node:crypto";
import type { ApprovalDocument, TransactionDocument } from "../../src/store/documents.ts";
import { paymentIn } from "../../src/store/payment-records.ts";
import { TEST_PAYMENT_PROOFS } from "./access-proofs.ts";
import { searchWords } from "../../src/domain/search-words.ts";
import { newId } from "../../src/lib/ids.ts";
import { organizationKey, type Scope, type TestOrganizationKey, type World } from "./world.ts";

/** Agents of an organization, and where they lie. */
export interface Placed {
  readonly agentId: string;
  readonly teamId: string;
  readonly projectId: string;
}

/** Two projects with two teams each and two agents in each team. */
export async function populate(world: World): Promise<readonly Placed[]> {
  const { api, token } = world;
  const projects = [world.organization.projectId];
  const { project } = await api.ok("createProject", 201, { token, body: { name: "Second" } });
  projects.push(project.id);
  const placed: Placed[] = [];
  for (const projectId of projects) {
    for (const name of ["One", "Two"]) {
      const { team } = await api.ok("createTeam", 201, { token, body: { name, projectId } });
      for (let agents = 0; agents < 2; agents += 1) {
        const agent = await world.agent({ teamId: team.id });
        placed.push({ agentId: agent.id, teamId: team.id, projectId });
      }
    }
  }
  return placed;
}

/** Keys bound to the organization, to the first project and to the first team. */
export async function boundKeys(
  world: World,
  placed: readonly Placed[],
  scopes: readonly Scope[] = ["agents:read"],
) {
  const [first] = placed;
  if (first === undefined) throw new Error("somebody lies somewhere");
  const mint = (
    binding: NonNullable<Parameters<typeof organizationKey>[1]>["binding"],
  ): Promise<TestOrganizationKey> =>
    organizationKey(world, { scopes, ...(binding === undefined ? {} : { binding }) });
  return {
    organization: { ...(await mint({ type: "organization" })), within: {} },
    project: {
      ...(await mint({ type: "project", id: first.projectId })),
      within: { projectId: first.projectId },
    },
    team: { ...(await mint({ type: "team", id: first.teamId })), within: { teamId: first.teamId } },
  };
}

/** A payment's record as the service writes it, for lists of more payments than a test can make. */
export const transactionOf = (
  organizationId: string,
  { agentId, projectId, teamId }: Placed,
  fields: Partial<TransactionDocument> = {},
): TransactionDocument => {
  const texts = { amountCents: 100, onChainTxHash: null, purpose: "a test", recipient: "shop", ...fields };
  const amountMc = mcOf(texts.amountCents);
  const isCharged = ["approved", "reversed"].includes(fields.status ?? "approved");
  const books = isCharged ? { ...NO_BOOKS, authorizations: [capturedInFull(amountMc)] } : null;
  const payment = { status: "approved", books, request: { amountMc } } as const;
  return {
    _id: newId("txn"),
    organizationId,
    projectId,
    teamId,
    agentId,
    agentName: "Agent",
    keyHash: randomUUID(),
    payloadHash: "payload",
    sequence: 1,
    createdAt: new Date(),
    ...texts,
    comparedRecipient: "shop",
    words: searchWords(texts),
    merchantCategory: null,
    ...storedAmounts(amountsOf(payment)),
    stage: stageOf({ books, phase: "done" }),
    breach: null,
    currency: "USD",
    rail: "card",
    status: "approved",
    denialReason: null,
    denialCode: null,
    denialDetails: null,
    deniedAt: null,
    feedback: null,
    chainCaip2: null,
    approvalId: null,
    revision: 1,
    ledgerState: {
      phase: "done",
      day: "2026-01-01",
      policyVersion: 1,
      amountMc,
      books,
      booksProof: "",
      approvalId: newId("apr"),
      fingerprint: "fingerprint",
      proof: "proof",
      rulesVersions: null,
    },
    ...fields,
  };
};

/** The record as a service of tests proves it. */
export function proven(record: TransactionDocument): TransactionDocument {
  const proof = TEST_PAYMENT_PROOFS.ofOrder(record, paymentIn(record, null).request);
  const booksProof = TEST_PAYMENT_PROOFS.ofBooks(record);
  return { ...record, ledgerState: { ...record.ledgerState, proof, booksProof } };
}

/** The same for a request for approval. */
export const approvalOf = (
  organizationId: string,
  { agentId, projectId, teamId }: Placed,
  fields: Partial<ApprovalDocument> = {},
): ApprovalDocument => ({
  _id: newId("apr"),
  transactionId: newId("txn"),
  organizationId,
  projectId,
  teamId,
  agentId,
  agentName: "Agent",
  amountCents: 100,
  currency: "USD",
  rail: "card",
  recipient: "shop",
  purpose: "a test",
  budgetContext: { budgetCents: 100, spentCents: 0, reservedCents: 100, remainingCents: 0 },
  flaggedByRuleTypes: ["agent_threshold"],
  createdAt: new Date(),
  expiresAt: new Date(Date.now() + 86_400_000),
  state: "pending",
  resolution: null,
  resolvedAt: null,
  resolvedBy: null,
  feedback: null,
  revision: 1,
  ledgerState: { proof: null, policyVersion: null },
  ...fields,
});
