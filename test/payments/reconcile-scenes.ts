import { TemporalCalls } from "../../src/actors/calls.ts";
import { TemporalActors } from "../../src/actors/temporal.ts";
import type { Difference } from "../../server/admin/reconcile/difference.ts";
import { type Reconciled, reconcileOn } from "../../server/admin/reconcile/reconcile.ts";
import { type Collections, collectionsOf } from "../../src/store/collections.ts";
import { recordedBooks } from "../../src/store/stored-books.ts";
import { type TestAgent, until, type World } from "../support/world.ts";

/** Longer than a record is behind its actor, shorter than a sweep: for what is not repaired by waiting. */
export const SHORT_MS = 1_500;
/** Longer than anything is under way while nothing is killed. */
export const LONG_MS = 20_000;
export const REST_MS = 120_000;
const CAP_CENTS = 5_000_000;

/** What is altered by hand, with the payments that there are to be altered. */
export interface Scene {
  readonly agent: TestAgent;
  /** Closed: approved, with its capture. */
  readonly paid: string;
  /** On hold. */
  readonly held: string;
  /** Closed: denied by the owner. */
  readonly denied: string;
  readonly books: Collections;
}

/** Writes books of 1 cent less into a payment's record. */
export async function captureLess({ transactions }: Collections, _id: string): Promise<void> {
  const record = await transactions.findOne({ _id });
  const books = record === null ? null : recordedBooks(record.ledgerState);
  if (books === null) throw new Error("the payment has no books");
  const authorizations = books.authorizations.map((each) => ({
    ...each,
    capturedMc: each.capturedMc - 1_000,
  }));
  await transactions.updateOne({ _id }, { $set: { "ledgerState.books": { ...books, authorizations } } });
}

/** Which kinds of differences there are, sorted, each once. */
export const kindsOf = (differences: readonly Difference[]): readonly string[] =>
  [...new Set(differences.map(({ kind }) => kind))].toSorted();

/** Reconciles the books of the world's organization. */
export const run = (
  { organization, service }: World,
  repair = false,
  patienceMs = SHORT_MS,
): Promise<Reconciled> =>
  reconcileOn(service.connections, service.env, {
    organizationId: organization.organizationId,
    repair,
    patienceMs,
    onProgress: () => undefined,
  });

/** Sets a cap for the world's team that nothing reaches. */
export async function capTeam({ api, organization, token }: World): Promise<void> {
  const id = organization.teamId;
  await until("the team has its cap", async () => {
    const { agents, capCents, version } = await api.ok("getTeamBudget", 200, { token, id });
    if (capCents === CAP_CENTS) return true;
    // On a busy machine it may be answered 503 and be in force all the same.
    await api.call("setTeamBudget", { token, id, body: { capCents: CAP_CENTS, agents, version } });
    return null;
  });
}

/** An agent under a cap with a payment of each kind. */
export async function newScene(world: World): Promise<Scene> {
  const agent = await world.agent({ autoApprovalThresholdCents: 500 });
  const paid = (await agent.pay({ amountCents: 300 })).transaction.id;
  const held = (await agent.hold({ amountCents: 600 })).transactionId;
  const other = await agent.hold({ amountCents: 700 });
  const body = { feedback: "No." };
  await world.api.ok("denyApproval", 200, { token: world.token, id: other.approvalId, body });
  return { agent, paid, held, denied: other.transactionId, books: collectionsOf(world.service.db) };
}

/** The actors of the world's service. */
export const actorsOf = ({ service }: World): TemporalActors =>
  new TemporalActors(new TemporalCalls(service.connections.temporal, "unused"));

/** Waits until the ledger has let go of what has ended and knows it to be written, and the key's use is, so that no process writes altered records again. */
export const atRest = (world: World, { agent, books, held }: Scene): Promise<true> =>
  until(
    "the agent is at rest",
    async () => {
      const { projectId } = world.organization;
      const { accounts } = await actorsOf(world).ledgerSnapshot(projectId, { after: null, limit: 250 });
      const account = accounts.find(({ agentId }) => agentId === agent.id);
      if (account === undefined) throw new Error("an agent has no account");
      const { confirmedRevision, open, revision } = account;
      const ids = open.map(({ payment }) => payment.request.transactionId);
      const record = await books.agents.findOne({ _id: agent.id });
      const isUseWritten = record?.key?.lastUsedAt !== null;
      return isUseWritten && confirmedRevision === revision && ids.join(" ") === held ? true : null;
    },
    REST_MS,
  );
