import type { AgentBook, BookedPayment } from "./agent-book.ts";
import { isHeld } from "./agent-book.ts";
import type { KeyBook } from "./key-book.ts";
import type { AgentShown } from "./observer.ts";
import { must, mustEqual } from "./violation.ts";

/** What may follow on a status. What was settled and reversed since may be heard of as one. */
export const CHANGES: Readonly<Record<string, readonly string[]>> = {
  pending: ["pending", "approved", "denied", "failed", "expired", "reversed"],
  approved: ["approved", "reversed"],
};

type Payments = ReadonlyMap<string, BookedPayment>;

/** All that an agent's actor keeps is as the book has it: usage, keys, and every payment that is open. */
export function auditShown(book: AgentBook, shown: AgentShown, payments: Payments, now: number): void {
  mustEqual(shown.usage, book.usage(now), `the usage of ${book.agentId}`);
  mustEqual(shown.sequence, book.payments.length, `how many payments ${book.agentId} has decided`);
  auditKeys(book.keys, shown);
  must(!(book.isArchivedByMachine() && book.wasUsed()), "used, and archived by a machine");
  const isEnded = book.lifecycle === "archived";
  must(!isEnded || book.held().every(({ ask }) => ask !== null), "an archived agent has a payment on hold");
  auditOpen(book, shown, payments);
}

function auditKeys(keys: KeyBook, { access }: AgentShown): void {
  if (access === null) return must(!keys.isKnown, "an actor forgot its keys");
  mustEqual(access.activeKeyId, keys.activeKeyId(), "the active key");
  mustEqual(access.authenticatedAt, keys.authenticatedAt, "when a key was first used");
  if (!keys.isKnown) return;
  mustEqual(access.touchedByPerson, keys.isTouchedByPerson, "whether a person touched its keys");
  mustEqual(access.bundled?.provenAt ?? null, keys.provenAt, "the proof of non-delivery");
  mustEqual(access.bundled?.erased ?? false, keys.isErased, "whether the first key is erased");
  must(keys.provenAt === null || keys.isWindowOver(keys.provenAt), "proven in the window");
}

function auditOpen(book: AgentBook, { open }: AgentShown, payments: Payments): void {
  const ids = new Set(open.map(({ transactionId }) => transactionId));
  for (const payment of book.payments) {
    const mayBeClosed = payment.isOver && payment.isConfirmed;
    must(mayBeClosed || ids.has(payment.id), `${payment.id} is not over, and not open`);
  }
  for (const one of open) {
    const payment = payments.get(one.transactionId);
    must(payment !== undefined, `nobody decided ${one.transactionId}`);
    mustEqual(one.status, payment.status, `the status of ${payment.id}`);
    mustEqual(one.isHeld, isHeld(payment), `whether ${payment.id} is on hold`);
    const isAllowed = one.status === payment.shown || CHANGES[payment.shown]?.includes(one.status) === true;
    must(isAllowed, `${payment.id} went from ${payment.shown} to ${one.status}`);
    payment.shown = one.status;
  }
}
