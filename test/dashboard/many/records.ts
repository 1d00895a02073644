import pLimit from "p-limit";
import { agentRecord } from "../../../lab/bench/lists/seed.ts";
import { collectionsOf } from "../../../src/store/collections.ts";
import type { TransactionDocument } from "../../../src/store/documents.ts";
import { approvalOf, type Placed, transactionOf } from "../../support/payments-in-place.ts";
import { shortOrSoak } from "../../support/soak.ts";
import { times, type World } from "../../support/world.ts";

/** Agents, payments and approvals of an organization that has many, as the service writes them. */

const AGENTS = shortOrSoak(600, 10_000);
const TRANSACTIONS = shortOrSoak(2_000, 1_000_000);
/** The number in the texts of the oldest payment, which begins no other payment's number. */
export const OLDEST = String(TRANSACTIONS - 1);
/** As many as the inbox reads. */
export const HELD = 200;
const HELD_MS = 3_000_000;
/** Payments that the ledger holds, and those of them that fit their agent's budget. */
export const REAL = shortOrSoak(24, 200);
export const PAID = REAL - 20;
const HOLDS_AT_ONCE = 20;
const AT_ONCE = 5_000;
const STATUSES = ["approved", "approved", "approved", "denied", "failed"] as const;

/** Payments on hold in the ledger, of an agent in a team of its own, whose budget is lowered below what they need. */
export async function holdPayments(world: World): Promise<void> {
  const { api, organization, token } = world;
  const { projectId } = organization;
  const body = { name: "Payers", projectId };
  const { team } = await api.ok("createTeam", 201, { token, body });
  const fields = { name: "Payer", teamId: team.id, budgetCents: 100_000, autoApprovalThresholdCents: 0 };
  const payer = await world.agent(fields);
  const limit = pLimit(HOLDS_AT_ONCE);
  await Promise.all(times(REAL, () => limit(() => payer.hold({ amountCents: 150 }))));
  const { version } = await api.ok("getTeamBudget", 200, { token, id: team.id });
  const agents = [{ agentId: payer.id, budgetCents: 150 * PAID }];
  await api.ok("setTeamBudget", 200, { token, id: team.id, body: { capCents: null, agents, version } });
}

/** All in the organization's own team, whose budget is the ledger's. */
export async function writeRecords({ organization, service }: World): Promise<void> {
  const { organizationId, projectId, teamId } = organization;
  const { agents, approvals, transactions } = collectionsOf(service.db);
  const began = Date.now();
  const place = { organizationId, projectId, teamId };
  const records = times(AGENTS, (index) => agentRecord(place, index, new Date(began - AGENTS + index)));
  await agents.insertMany([...records]);
  const placed: readonly Placed[] = records.map(({ _id }) => ({ agentId: _id, projectId, teamId }));
  const of = (index: number): Placed => {
    const found = placed[index % placed.length];
    if (found === undefined) throw new Error("there are agents");
    return found;
  };
  const payment = (index: number): TransactionDocument =>
    transactionOf(organizationId, of(index), {
      agentName: `Agent ${String(index % AGENTS)}`,
      recipient: `Merchant ${String(index)}`,
      createdAt: new Date(began - index * 7_000),
      status: STATUSES[index % STATUSES.length] ?? "approved",
      purpose: `Order ${String(index)}: supplies, as agreed`,
    });
  for (let written = 0; written < TRANSACTIONS; written += AT_ONCE) {
    const batch = times(Math.min(AT_ONCE, TRANSACTIONS - written), (index) => payment(written + index));
    await transactions.insertMany([...batch], {
      ordered: false,
      writeConcern: { w: 1, journal: false },
    });
  }
  // Below an hour, clocks show seconds.
  const expiresAt = new Date(began + HELD_MS);
  await approvals.insertMany(
    times(HELD, (index) =>
      approvalOf(organizationId, of(index), { expiresAt, flaggedByRuleTypes: ["new_recipient"] }),
    ),
  );
}
