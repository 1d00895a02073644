import type { AgentBook, BookedPayment } from "./agent-book.ts";
import { isHeld } from "./agent-book.ts";
import { auditShown } from "./shown.ts";
import type { CapBook } from "./cap-book.ts";
import type { Books } from "./observer.ts";
import { must, mustEqual } from "./violation.ts";

interface Ours {
  readonly agents: ReadonlyMap<string, AgentBook>;
  readonly payments: ReadonlyMap<string, BookedPayment>;
  readonly caps: CapBook;
}

/** With nothing under way, the books of actors, budget, records and rail say the same, to the cent. */
export function auditBooks({ agents, caps, payments }: Ours, books: Books): void {
  for (const agent of agents.values()) auditAgent(agent, books, payments);
  for (const payment of payments.values()) auditPayment(payment, books);
  const held = [...payments.values()].filter(isHeld).map(({ id }) => id);
  mustEqual([...books.pendingApprovals].toSorted(), held.toSorted(), "the approvals that are pending");
  for (const transactionId of books.ledger.keys()) {
    must(payments.has(transactionId), `the rail was paid for ${transactionId}, which nobody decided`);
  }
  caps.mustAgree(null, books.budget.project);
  for (const teamId of new Set([...agents.values()].map((agent) => agent.teamId))) {
    caps.mustAgree(teamId, books.budget.teams[teamId] ?? { spentCents: 0, reservedCents: 0 });
  }
}

function auditAgent(
  agent: AgentBook,
  { agentRecords, agents, now }: Books,
  payments: Ours["payments"],
): void {
  const { agentId } = agent;
  const shown = agents.get(agentId);
  must(shown !== undefined, `${agentId} shows nothing`);
  auditShown(agent, shown, payments, now);
  mustEqual(
    shown.open.map(({ transactionId }) => transactionId).filter((id) => !isWaiting(payments.get(id))),
    [],
    "what is open for ever",
  );
  agent.journal.expectComplete(shown.events);
  for (const summary of [shown, agentRecords.get(agentId)]) {
    mustEqual(summary?.spentCents, agent.spentCents, `spent by ${agentId}`);
    mustEqual(summary?.reservedCents, agent.reservedCents, `reserved by ${agentId}`);
    mustEqual(summary?.policyVersion, agent.version, `the version of the policy of ${agentId}`);
    mustEqual(summary?.lifecycle, agent.lifecycle, `the life of ${agentId}`);
    mustEqual(summary?.name, agent.name, `the name of ${agentId}`);
  }
  const isSet = agent.lifecycle === "archived" || agent.budgetByTeam === null;
  must(
    isSet || agent.budgetByTeam === agent.policy.budgetCents,
    () =>
      `${agentId} has ${agent.policy.budgetCents}, and its team's budget gave it ${agent.budgetByTeam ?? ""}`,
  );
}

/** For a person, or for a rail that has not made up its mind for good. */
const isWaiting = (payment: BookedPayment | undefined): boolean => payment !== undefined && !payment.isOver;

function auditPayment(payment: BookedPayment, { ledger, paymentRecords }: Books): void {
  const { amountCents, id, isCaptured, isReversed, status } = payment;
  mustEqual(paymentRecords.get(id)?.status, status, `the record of ${id}`);
  mustEqual(ledger.get(id) ?? 0, isCaptured && !isReversed ? amountCents : 0, `the rail's books for ${id}`);
  if (status === "approved") must(isCaptured && !isReversed, `${id} is approved, and the rail has nothing`);
  must(payment.ask === null, `${id} still waits for the budget's word`);
  if (isHeld(payment)) return must(payment.rail === null, `${id} is on hold and was sent`);
  if (payment.rail === null) {
    return must(payment.isOver && !isCaptured, `${id} is ${status}, and was never sent`);
  }
  mustEqual(status, STATUS_BY_RAIL[payment.rail], `${id}, after its rail said ${payment.rail}`);
}

/** What a payment is when its rail has said so. */
export const STATUS_BY_RAIL = {
  pending: "pending",
  settled: "approved",
  final: "approved",
  failed: "failed",
  reversed: "reversed",
  withheld: "denied",
} as const;
