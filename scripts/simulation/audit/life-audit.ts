import type { Archiver, MachineArchiver } from "../../../src/domain/agent/archive.ts";
import type { AgentReply } from "../../../src/domain/agent/commands.ts";
import type { AgentSummary } from "../../../src/domain/agent/state.ts";
import type { AuditBooks } from "./books.ts";
import type { LifeBook } from "./life-book.ts";
import type { AgentAnswered } from "./observer.ts";
import { must, mustEqual } from "./violation.ts";

const DENIED = "MACHINE_ARCHIVE_DENIED";

/** What an agent's actor answers about the agent's life, by the books, which follow the answers. */
export class LifeAudit {
  readonly #books: AuditBooks;

  constructor(books: AuditBooks) {
    this.#books = books;
  }

  expect({ agentId, command, now, reply, summary }: AgentAnswered): void {
    const book = this.#books.life(agentId);
    switch (command.kind) {
      case "authenticate":
        this.#expectUse(book, command.keyId, reply, now);
        break;
      case "mint_key":
        this.#expectMint(book, command.keyId, reply);
        break;
      case "revoke_key":
        this.#expectRevoke(book, reply);
        break;
      case "prove_non_delivery":
        this.#expectProof(book, command.lineageId, reply, now);
        break;
      case "archive":
        this.#expectArchive(book, command.by, reply, now);
        break;
      case "rename":
        mustEqual(reply.kind, book.archivedAt === null ? "renamed" : "archived", "a new name");
        if (book.archivedAt === null) book.name = command.name;
        break;
      case "confirm_detached":
        if (book.archivedAt !== null) book.isDetached = true;
        mustEqual(reply.kind, "confirmed", `the answer to ${command.kind}`);
        break;
      case "confirm_record":
      case "confirm_followed":
      case "follow_status":
        mustEqual(reply.kind, "confirmed", `the answer to ${command.kind}`);
    }
    this.#expectShown(book, summary);
  }

  #expectUse(book: LifeBook, keyId: string, reply: AgentReply, now: number): void {
    const accepted = book.archivedAt === null && book.keys.isActive(keyId);
    mustEqual(reply, { kind: "authenticated", accepted }, `the use of ${keyId}`);
    this.#books.count(accepted ? "key accepted" : "key refused");
    if (accepted) book.keys.authenticatedAt ??= now;
  }

  #expectMint({ archivedAt, keys }: LifeBook, keyId: string, reply: AgentReply): void {
    if (archivedAt !== null) return mustEqual(reply.kind, "archived", "a key for an archived agent");
    // Told twice, by an engine or a network that repeats itself.
    if (keys.activeKeyId() === keyId) return mustEqual(reply, { kind: "key", keyId }, "the same key");
    if (keys.activeKeyId() !== null) return mustEqual(reply.kind, "key_exists", "a second key");
    mustEqual(reply, { kind: "key", keyId }, "a new key");
    keys.mint(keyId);
    this.#books.count("key minted");
  }

  #expectRevoke({ archivedAt, keys }: LifeBook, reply: AgentReply): void {
    if (archivedAt !== null) return mustEqual(reply.kind, "archived", "a revocation at an archived agent");
    const keyId = keys.activeKeyId();
    if (keyId === null) return mustEqual(reply.kind, "no_key", "a revocation without a key");
    mustEqual(reply, { kind: "key", keyId }, "a revocation");
    keys.revoke(keyId);
    this.#books.count("key revoked");
  }

  /** Stamped once, after the window, for the lineage that created the agent. */
  #expectProof({ keys }: LifeBook, lineageId: string, reply: AgentReply, now: number): void {
    const windowOver = keys.isWindowOver(now);
    const proven = windowOver && keys.lineageId === lineageId;
    mustEqual(reply, { kind: "non_delivery", windowOver, proven }, "a proof of non-delivery");
    if (proven) keys.provenAt ??= now;
    this.#books.count(proven ? "proven" : "not proven");
  }

  #expectArchive(book: LifeBook, by: Archiver, reply: AgentReply, now: number): void {
    const code = by.type === "user" ? null : this.#refusal(book, by, now);
    if (code !== null) {
      this.#books.count(code);
      return mustEqual(reply, { kind: "archive_refused", code }, "an archive by a machine");
    }
    mustEqual(reply, { kind: "archive", changed: book.archivedAt === null }, "an archive");
    if (book.archivedAt !== null) return this.#books.count("archived before");
    book.archivedAt = now;
    book.keys.die();
    this.#books.account(book.agentId).journal.happened("agent.archived", now);
    this.#books.count(by.type === "user" ? "archived" : "archived by a machine");
  }

  /**
   * A machine may archive only what it has created itself and nobody has ever had a use of: in this order, what can never
   * change comes before what a retry may mend.
   */
  #refusal({ archivedAt, keys }: LifeBook, by: MachineArchiver, now: number): string | null {
    if (by.lineageId !== keys.lineageId) return DENIED;
    if (archivedAt !== null) return null;
    if (keys.isTouchedByPerson || keys.authenticatedAt !== null) return DENIED;
    if (!keys.isWindowOver(now)) return "KEY_STILL_DELIVERABLE";
    if (keys.provenAt === null) return "KEY_DELIVERY_UNPROVEN";
    if (by.balance === "unreadable") return "BALANCE_UNVERIFIABLE";
    return by.balance === "zero" ? null : DENIED;
  }

  /** What its record shows is what the book says, and one revision of it always the same. */
  #expectShown(book: LifeBook, summary: AgentSummary): void {
    const { agentId, keys } = book;
    mustEqual(summary.name, book.name, `the name of ${agentId}`);
    mustEqual(summary.archivedAt, book.archivedAt, `when ${agentId} was archived`);
    mustEqual(summary.walletDetached, book.isDetached, `whether the wallet of ${agentId} is detached`);
    mustEqual(summary.keyId, keys.activeKeyId(), "the active key");
    mustEqual(summary.authenticatedAt, keys.authenticatedAt, "when a key was first used");
    this.#books.account(agentId).journal.expectOutbox(summary.events, ["agent.archived"]);
    const { events: _told, ...record } = summary;
    must(record.revision >= book.revision, "an agent's revision fell");
    const text = JSON.stringify(record);
    must(record.revision > book.revision || text === book.record, "one revision shows two things");
    book.revision = record.revision;
    book.record = text;
  }
}
