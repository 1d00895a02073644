import type { AgentSummary } from "../../../src/domain/agent/state.ts";
import type { AgentBook } from "./agent-book.ts";
import { must, mustEqual } from "./violation.ts";

/** An agent's record, as it is after each command, says what the book says, and one revision of it always the same. */
export function auditRecord(book: AgentBook, summary: AgentSummary): void {
  const { agentId } = book;
  mustEqual(summary.spentCents, book.spentCents, `spent by ${agentId}`);
  mustEqual(summary.reservedCents, book.reservedCents, `reserved by ${agentId}`);
  mustEqual(summary.lifecycle, book.lifecycle, `the life of ${agentId}`);
  mustEqual(summary.archivedAt, book.archivedAt, `when ${agentId} was archived`);
  mustEqual(summary.walletDetached, book.isDetached, `whether the wallet of ${agentId} is detached`);
  mustEqual(summary.name, book.name, `the name of ${agentId}`);
  mustEqual(summary.policyVersion, book.version, `the version of the policy of ${agentId}`);
  mustEqual(summary.policy, book.policy, `the policy of ${agentId}`);
  if (summary.keyId !== undefined) mustEqual(summary.keyId, book.keys.activeKeyId(), "the active key");
  mustEqual(summary.authenticatedAt, book.keys.authenticatedAt, "when a key was first used");
  book.journal.expectOutbox(summary.events);
  auditRevision(book, summary);
}

function auditRevision(book: AgentBook, { events: _told, ...record }: AgentSummary): void {
  must(record.revision >= book.revision, "an agent's revision fell");
  const text = JSON.stringify(record);
  must(record.revision > book.revision || text === book.record, "one revision shows two things");
  book.revision = record.revision;
  book.record = text;
}
