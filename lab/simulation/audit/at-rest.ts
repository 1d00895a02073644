import { type AccountModel, MC, type PaymentModel, isClosed, isHeld } from "./account-model.ts";
import type { WorldModel } from "./books.ts";
import { isAsAnswered } from "./payment-audit.ts";
import type { AgentModel } from "./agent-model.ts";
import type { Books } from "./observer.ts";
import { shownAt } from "./increases-model.ts";
import { must, mustBeSame, mustEqual } from "./violation.ts";

/** With nothing under way, the books of ledger, actors, records and rail say the same, to the cent. */
export function auditAtRest(ours: WorldModel, books: Books): void {
  const at = ours.windowsAt(books.now);
  for (const account of ours.accounts.values()) {
    const life = ours.life(account.agentId);
    auditRecord(account, life, books, at);
    if (account.status === "closed") auditEnded(account, books);
    else auditAccount(account, life, books);
    account.journal.expectComplete();
  }
  for (const payment of ours.payments.values()) auditPayment(payment, books);
  const held = [...ours.payments.values()].filter(isHeld).map(({ id }) => id);
  mustEqual([...books.pendingApprovals].toSorted(), held.toSorted(), "the approvals that are pending");
  for (const transactionId of books.network.keys())
    must(ours.payments.has(transactionId), `the rail was paid for ${transactionId}, which was never decided`);
  for (const teamId of [null, ...new Set([...ours.accounts.values()].map((account) => account.teamId))])
    auditTotals(ours, teamId, books);
  for (const [teamId, recorded] of books.recordedCaps) {
    const { capCents, increases, spendLimits, version } = ours.level(teamId);
    mustEqual(
      shownAt({ spendLimits: [], ...recorded }, at),
      shownAt({ capCents, spendLimits, version, increases }, at),
      `the recorded cap of ${teamId ?? "the project"}`,
    );
  }
}

function auditAccount(account: AccountModel, life: AgentModel, { accounts, lives, now }: Books): void {
  const { agentId } = account;
  const shown = accounts.get(agentId);
  must(shown !== undefined, `the account of ${agentId} is gone`);
  must(lives.has(agentId), `the actor of ${agentId} has ended`);
  mustEqual(life.archivedAt, null, `the account of an archived agent is open: when ${agentId} ended`);
  mustEqual(shown.keyId, life.keys.activeKeyId(), `the key of ${agentId} that may pay`);
  mustEqual(shown.name, life.name, `the name of ${agentId} in the ledger`);
  mustEqual(shown.sequence, account.payments.length, `how many payments ${agentId} has decided`);
  const { lastHourCount, todayCents, todayCount } = shown.view;
  mustEqual({ todayCents, todayCount }, account.usage(now), `the usage of ${agentId}`);
  const { least, most } = account.hourCounts(now);
  must(lastHourCount >= least && lastHourCount <= most, `the hour of ${agentId}`);
  const open = shown.open.map(({ payment }) => payment.request.transactionId).toSorted();
  const waiting = account.payments.filter(({ isOver }) => !isOver).map(({ id }) => id);
  mustEqual(open, waiting.toSorted(), `what is open for ever of ${agentId}`);
  mustEqual(shown.events, [], `events of ${agentId} that stay in the outbox for ever`);
}

/** Nothing is left of an archived agent but its records, once all that it had under way is over. */
function auditEnded({ agentId, payments }: AccountModel, { accounts, lives }: Books): void {
  const isWaiting = payments.some((payment) => !isClosed(payment));
  must(isWaiting || !accounts.has(agentId), `the closed account of ${agentId} stays for ever`);
  must(!lives.has(agentId), `the actor of ${agentId} goes on after its end`);
}

function auditRecord(account: AccountModel, model: AgentModel, { records }: Books, at: number): void {
  const { agentId } = account;
  const record = records.get(agentId);
  must(record !== undefined, `${agentId} has no record`);
  const { account: money, life } = record;
  mustEqual(money.spentCents, Math.ceil(account.spentMc / MC), `recorded as spent by ${agentId}`);
  mustEqual(money.reservedCents, Math.ceil(account.reservedMc / MC), `recorded as reserved by ${agentId}`);
  mustEqual(money.policyVersion, account.version, `the recorded version of the policy of ${agentId}`);
  const { increases, policy } = account;
  mustEqual(
    shownAt(money.policy, at),
    shownAt({ ...policy, increases }, at),
    `the recorded policy of ${agentId}`,
  );
  mustEqual(money.status, account.status, `the recorded status of ${agentId}`);
  mustEqual(life.name, model.name, `the recorded name of ${agentId}`);
  mustEqual(life.archivedAt, model.archivedAt, `the recorded end of ${agentId}`);
  mustEqual(life.keyId, model.keys.activeKeyId(), `the recorded key of ${agentId}`);
}

function auditPayment(payment: PaymentModel, { network, paymentRecords }: Books): void {
  const { id, isCaptured, status } = payment;
  const record = paymentRecords.get(id);
  mustEqual(record?.status, status, `the record of ${id}`);
  const books = network.get(id) ?? [];
  mustBeSame(record?.books?.authorizations ?? [], books, `the books of ${id}, and its network's`);
  if (status === "approved") must(isCaptured, `${id} is approved, and the rail has nothing`);
  if (isHeld(payment)) return must(payment.rail === null, `${id} is on hold and was sent`);
  if (payment.rail === null)
    return must(payment.isOver && !isCaptured, `${id} is ${status}, and was never sent`);
  must(isAsAnswered(payment), `${id} is ${status}, after its rail said ${payment.rail}`);
}

/** Compares what a level has used with its networks' books and its holds. */
function auditTotals(ours: WorldModel, teamId: string | null, { caps, network }: Books): void {
  const total = { spentMc: 0, reservedMc: 0 };
  for (const payment of ours.payments.values()) {
    if (teamId !== null && ours.account(payment.agentId).teamId !== teamId) continue;
    const [books] = network.get(payment.id) ?? [];
    if (books === undefined) {
      if (payment.status === "pending") total.reservedMc += payment.amountMc;
      continue;
    }
    const { authorizedMc, capturedMc, creditedMc, isOpen, recalledMc } = books;
    total.spentMc += Math.max(0, capturedMc - creditedMc + recalledMc);
    if (isOpen) total.reservedMc += Math.max(0, authorizedMc - capturedMc);
  }
  const shown = teamId === null ? caps.project : caps.teams[teamId];
  mustEqual({ ...shown?.totals }, total, `the totals of ${teamId ?? "the project"}, and their networks'`);
}
