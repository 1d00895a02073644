import type { Archiver, MachineArchiver } from "../../../src/domain/agent/archive.ts";
import type { AgentCommand, AgentReply } from "../../../src/domain/agent/commands.ts";
import type { AgentBook } from "./agent-book.ts";
import type { Ledger } from "./ledger.ts";
import { must, mustEqual } from "./violation.ts";

type Of<K extends AgentCommand["kind"]> = Extract<AgentCommand, { kind: K }>;

/** Commands about an agent itself: its keys, its name, and whether it may pay at all. */
export type LifeCommand = Of<
  | "authenticate"
  | "mint_key"
  | "revoke_key"
  | "prove_non_delivery"
  | "confirm_erased"
  | "archive"
  | "confirm_detached"
  | "pause"
  | "resume"
  | "rename"
>;

const DENIED = "MACHINE_ARCHIVE_DENIED";

/** What an agent answers about itself. */
export class LifeAudit {
  readonly #ledger: Ledger;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  expect(book: AgentBook, command: LifeCommand, reply: AgentReply, now: number): void {
    switch (command.kind) {
      case "authenticate":
        return this.#expectUse(book, command.keyId, reply, now);
      case "mint_key":
        return this.#expectMint(book, command.keyId, reply);
      case "revoke_key":
        return this.#expectRevoke(book, reply);
      case "prove_non_delivery":
        return this.#expectProof(book, command.lineageId, reply, now);
      case "confirm_erased":
        book.keys.isErased = book.keys.isKnown;
        return expectKind(reply, "confirmed", command);
      case "archive":
        return this.#expectArchive(book, command.by, reply, now);
      case "confirm_detached":
        if (book.lifecycle === "archived") book.isDetached = true;
        return expectKind(reply, "confirmed", command);
      case "pause":
      case "resume":
        return this.#expectChange(book, command.kind === "pause" ? "paused" : "active", reply, now);
      case "rename":
        return this.#expectRename(book, command.name, reply);
    }
  }

  #expectUse(book: AgentBook, keyId: string, reply: AgentReply, now: number): void {
    const accepted = book.lifecycle !== "archived" && book.keys.isActive(keyId);
    mustEqual(reply, { kind: "authenticated", accepted }, `the use of ${keyId}`);
    this.#ledger.count(accepted ? "key accepted" : "key refused");
    if (accepted) book.keys.authenticatedAt ??= now;
  }

  #expectMint(book: AgentBook, keyId: string, reply: AgentReply): void {
    if (book.lifecycle === "archived")
      return mustEqual(reply.kind, "archived", "a key for an archived agent");
    // Told twice, by an engine or a network that repeats itself.
    if (book.keys.activeKeyId() === keyId) return mustEqual(reply, { kind: "key", keyId }, "the same key");
    if (book.keys.activeKeyId() !== null) {
      this.#ledger.count("second key refused");
      return mustEqual(reply.kind, "key_exists", "a second key");
    }
    mustEqual(reply, { kind: "key", keyId }, "a new key");
    book.keys.mint(keyId);
    this.#ledger.count("key minted");
  }

  #expectRevoke(book: AgentBook, reply: AgentReply): void {
    if (book.lifecycle === "archived")
      return mustEqual(reply.kind, "archived", "a revocation at an archived agent");
    const keyId = book.keys.activeKeyId();
    if (keyId === null) {
      this.#ledger.count("no key to revoke");
      return mustEqual(reply.kind, "no_key", "a revocation without a key");
    }
    mustEqual(reply, { kind: "key", keyId }, "a revocation");
    book.keys.revoke(keyId);
    if (book.lifecycle === "paused") book.withdraw();
    this.#ledger.count("key revoked");
  }

  /** Stamped once, after the window, for the lineage that created the agent. */
  #expectProof(book: AgentBook, lineageId: string, reply: AgentReply, now: number): void {
    const { keys } = book;
    const windowOver = keys.isWindowOver(now);
    const proven = windowOver && keys.lineageId === lineageId;
    mustEqual(reply, { kind: "non_delivery", windowOver, proven }, "a proof of non-delivery");
    if (proven) keys.provenAt ??= now;
    this.#ledger.count(proven ? "proven" : windowOver ? "not proven" : "not proven in the window");
  }

  #expectArchive(book: AgentBook, by: Archiver, reply: AgentReply, now: number): void {
    const code = by.type === "user" ? null : this.#refusal(book, by, now);
    if (code !== null) {
      this.#ledger.count(code);
      return mustEqual(reply, { kind: "archive_refused", code }, "an archive by a machine");
    }
    must(reply.kind === "archive", `an archive was answered ${reply.kind}`);
    mustEqual(reply.changed, book.lifecycle !== "archived", "whether it was archived just now");
    if (!reply.changed) return this.#ledger.count("archived before");
    const held = book.held().filter(({ ask }) => ask === null);
    const ids = held.map(({ id }) => id).toSorted();
    mustEqual([...(reply.ended ?? [])].toSorted(), ids, "what archiving ended");
    for (const payment of held) {
      const status = now >= payment.expiresAt ? "expired" : "denied";
      this.#ledger.change(book, payment, { status, isOver: true, ask: null });
    }
    if (book.lifecycle === "paused") book.withdraw();
    book.archive(by.type, now);
    this.#ledger.count(by.type === "user" ? "archived" : "archived by a machine");
    if (held.length > 0) this.#ledger.count("archived with payments on hold");
  }

  /**
   * A machine may archive only what it has created itself and nobody has ever had a use of: in this order, what can never
   * change comes before what a retry may mend.
   */
  #refusal(book: AgentBook, by: MachineArchiver, now: number): string | null {
    const { keys } = book;
    if (by.lineageId !== keys.lineageId) return DENIED;
    if (book.lifecycle === "archived") return null;
    if (book.wasUsed() && keys.provenAt !== null)
      this.#ledger.count("refused to a machine, since it was used");
    if (keys.isTouchedByPerson || book.wasUsed()) return DENIED;
    if (!keys.isWindowOver(now)) return "KEY_STILL_DELIVERABLE";
    if (keys.provenAt === null) return "KEY_DELIVERY_UNPROVEN";
    if (by.balance === "unreadable") return "BALANCE_UNVERIFIABLE";
    return by.balance === "zero" ? null : DENIED;
  }

  #expectChange(book: AgentBook, lifecycle: "active" | "paused", reply: AgentReply, now: number): void {
    if (book.lifecycle === "archived") return mustEqual(reply.kind, "archived", "an archived agent's life");
    const changed = book.lifecycle !== lifecycle;
    const isQuiet = lifecycle === "active" || book.onTheirWay().length === 0 || book.leaveUntil <= now;
    const quiet = isQuiet ? {} : { quietAfterMs: book.leaveUntil - now };
    mustEqual(reply, { kind: "lifecycle", lifecycle, changed, ...quiet }, "a change of life");
    if (!changed) return;
    book.lifecycle = lifecycle;
    book.quietAt = lifecycle === "paused" ? Math.max(now, book.leaveUntil) : null;
    if (lifecycle === "paused" && book.keys.activeKeyId() === null) book.withdraw();
    book.journal.happened(lifecycle === "paused" ? "agent.paused" : "agent.resumed", now);
    this.#ledger.count(lifecycle === "paused" ? "paused" : "resumed");
  }

  #expectRename(book: AgentBook, name: string, reply: AgentReply): void {
    if (book.lifecycle === "archived")
      return mustEqual(reply.kind, "archived", "an archived agent's new name");
    mustEqual(reply.kind, "renamed", "a new name");
    book.name = name;
  }
}

export const expectKind = (reply: AgentReply, kind: AgentReply["kind"], command: AgentCommand): void =>
  mustEqual(reply.kind, kind, `the answer to ${command.kind}`);
