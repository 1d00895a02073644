import type { Archiver, MachineArchiver } from "../../../src/domain/agent/archive.ts";
import type { AgentReply } from "../../../src/domain/agent/commands.ts";
import type { AgentSummary } from "../../../src/domain/agent/state.ts";
import type { WorldModel } from "./books.ts";
import type { AgentModel } from "./agent-model.ts";
import type { AgentAnswered } from "./observer.ts";
import { must, mustEqual } from "./violation.ts";

const DENIED = "MACHINE_ARCHIVE_DENIED";

/** Checks an agent's actor against the books, which follow its answers. */
export class AgentAudit {
  readonly #books: WorldModel;

  constructor(books: WorldModel) {
    this.#books = books;
  }

  expect({ agentId, command, now, reply, summary }: AgentAnswered): void {
    const model = this.#books.life(agentId);
    switch (command.kind) {
      case "authenticate":
        this.#expectUse(model, command.keyId, reply, now);
        break;
      case "mint_key":
        this.#expectMint(model, command.keyId, reply);
        break;
      case "revoke_key":
        this.#expectRevoke(model, reply);
        break;
      case "prove_non_delivery":
        this.#expectProof(model, command.lineageId, reply, now);
        break;
      case "archive":
        this.#expectArchive(model, command.by, reply, now);
        break;
      case "rename":
        mustEqual(reply.kind, model.archivedAt === null ? "renamed" : "archived", "a new name");
        if (model.archivedAt === null) model.name = command.name;
        break;
      case "confirm_detached":
        if (model.archivedAt !== null) model.isDetached = true;
        mustEqual(reply.kind, "confirmed", `the answer to ${command.kind}`);
        break;
      case "follow_status": {
        const { revokedKeyId } = command;
        if (revokedKeyId !== null && model.keys.isActive(revokedKeyId)) model.keys.revoke(revokedKeyId);
        mustEqual(reply.kind, "confirmed", `the answer to ${command.kind}`);
        break;
      }
      case "confirm_record":
      case "confirm_followed":
        mustEqual(reply.kind, "confirmed", `the answer to ${command.kind}`);
    }
    this.#expectShown(model, summary);
  }

  #expectUse(model: AgentModel, keyId: string, reply: AgentReply, now: number): void {
    const accepted = model.archivedAt === null && model.keys.isActive(keyId);
    if (accepted) model.keys.authenticatedAt ??= now;
    const firstUsedAt = accepted ? model.keys.authenticatedAt : null;
    mustEqual(reply, { kind: "authenticated", firstUsedAt }, `the use of ${keyId}`);
    this.#books.count(accepted ? "key accepted" : "key refused");
  }

  #expectMint({ archivedAt, keys }: AgentModel, keyId: string, reply: AgentReply): void {
    if (archivedAt !== null) return mustEqual(reply.kind, "archived", "a key for an archived agent");
    // Told twice, by an engine or a network that repeats itself.
    if (keys.activeKeyId() === keyId || keys.isDead(keyId))
      return mustEqual(reply, { kind: "key", keyId }, "the same key");
    if (keys.activeKeyId() !== null) return mustEqual(reply.kind, "key_exists", "a second key");
    mustEqual(reply, { kind: "key", keyId }, "a new key");
    keys.mint(keyId);
    this.#books.count("key minted");
  }

  #expectRevoke({ archivedAt, keys }: AgentModel, reply: AgentReply): void {
    if (archivedAt !== null) return mustEqual(reply.kind, "archived", "a revocation at an archived agent");
    const keyId = keys.activeKeyId();
    if (keyId === null) return mustEqual(reply.kind, "no_key", "a revocation without a key");
    mustEqual(reply, { kind: "key", keyId }, "a revocation");
    keys.revoke(keyId);
    this.#books.count("key revoked");
  }

  /** Stamped once, after the window, for the lineage that created the agent. */
  #expectProof({ keys }: AgentModel, lineageId: string, reply: AgentReply, now: number): void {
    const windowOver = keys.isWindowOver(now);
    const proven = windowOver && keys.lineageId === lineageId;
    mustEqual(reply, { kind: "non_delivery", windowOver, proven }, "a proof of non-delivery");
    if (proven) keys.provenAt ??= now;
    this.#books.count(proven ? "proven" : "not proven");
  }

  #expectArchive(model: AgentModel, by: Archiver, reply: AgentReply, now: number): void {
    const code = by.type === "user" ? null : this.#refusal(model, by, now);
    if (code !== null) {
      this.#books.count(code);
      return mustEqual(reply, { kind: "archive_refused", code }, "an archive by a machine");
    }
    mustEqual(reply, { kind: "archive", changed: model.archivedAt === null }, "an archive");
    if (model.archivedAt !== null) return this.#books.count("archived before");
    model.archivedAt = now;
    model.keys.die();
    this.#books.account(model.agentId).journal.happened("agent.archived", now);
    this.#books.count(by.type === "user" ? "archived" : "archived by a machine");
  }

  /**
   * A machine may archive only what it has created itself and was never used: in this order, what can never
   * change comes before what a retry may mend.
   */
  #refusal({ archivedAt, keys }: AgentModel, by: MachineArchiver, now: number): string | null {
    if (by.lineageId !== keys.lineageId) return DENIED;
    if (archivedAt !== null) return null;
    if (keys.isTouchedByPerson || keys.authenticatedAt !== null) return DENIED;
    if (!keys.isWindowOver(now)) return "KEY_STILL_DELIVERABLE";
    if (keys.provenAt === null) return "KEY_DELIVERY_UNPROVEN";
    if (by.balance === "unreadable") return "BALANCE_UNVERIFIABLE";
    return by.balance === "zero" ? null : DENIED;
  }

  /** Checks that a record shows what the book has, and that a revision never changes. */
  #expectShown(model: AgentModel, summary: AgentSummary): void {
    const { agentId, keys } = model;
    mustEqual(summary.name, model.name, `the name of ${agentId}`);
    mustEqual(summary.archivedAt, model.archivedAt, `when ${agentId} was archived`);
    mustEqual(summary.walletDetached, model.isDetached, `whether the wallet of ${agentId} is detached`);
    mustEqual(summary.keyId, keys.activeKeyId(), "the active key");
    mustEqual(summary.authenticatedAt, keys.authenticatedAt, "when a key was first used");
    this.#books.account(agentId).journal.expectOutbox(summary.events, ["agent.archived"]);
    const { authenticatedAt: _first, events: _told, ...record } = summary;
    must(record.revision >= model.revision, "an agent's revision fell");
    const text = JSON.stringify(record);
    must(record.revision > model.revision || text === model.record, "one revision shows two things");
    model.revision = record.revision;
    model.record = text;
  }
}
