import { must, mustEqual } from "../../../lab/simulation/audit/violation.ts";
import type { AgentReply } from "../../../src/domain/agent/commands.ts";
import { type AgentState, followedOf, summarize } from "../../../src/domain/agent/state.ts";
import { CREATOR, DELIVERY_WINDOW_MS, FIRST_KEY } from "../support/agent.ts";
import { NOON, profile } from "../support/actor.ts";
import type { ArchiveBy } from "./actions.ts";

const UNTIL = NOON + DELIVERY_WINDOW_MS;

/** What an agent's life must be by now, kept by a model that knows the contract and not the actor. */
export class AgentModel {
  readonly tally = new Map<string, number>();
  /** Null: a person created it. */
  readonly #lineage: string | null;
  /** Every key that it ever had. */
  readonly keys: string[] = [FIRST_KEY];
  activeKey: string | null = FIRST_KEY;
  archivedAt: number | null = null;
  name = profile.name;
  status: "active" | "paused" = "active";
  detached = false;
  recorded = 1;
  followed = 1;
  #usedAt: number | null = null;
  #touched = false;
  #provenAt: number | null = null;
  readonly #shown = new Map<number, string>();
  #published: string[] = [];
  /** What the ledger has received of the agent. */
  #followedFields: string;

  constructor(origin: "machine" | "person", state: AgentState) {
    this.#lineage = origin === "machine" ? CREATOR : null;
    this.#followedFields = followedFields(state);
  }

  note(what: string): void {
    this.tally.set(what, (this.tally.get(what) ?? 0) + 1);
  }

  authenticated(keyId: string, reply: AgentReply, now: number): void {
    const accepted = this.archivedAt === null && keyId === this.activeKey;
    if (accepted) this.#usedAt ??= now;
    const firstUsedAt = accepted ? this.#usedAt : null;
    mustEqual(reply, { kind: "authenticated", firstUsedAt }, `the use of ${keyId}`);
    this.note(accepted ? "key accepted" : "key refused");
  }

  minted(keyId: string, reply: AgentReply): void {
    if (this.archivedAt !== null)
      return mustEqual(reply, { kind: "archived" }, "a key for an archived agent");
    if (this.activeKey === keyId)
      return mustEqual(reply, { kind: "key", keyId }, "a key that is minted again");
    if (this.keys.includes(keyId))
      return mustEqual(reply, { kind: "key", keyId }, "a revoked key that is minted again");
    if (this.activeKey !== null) {
      this.note("second key refused");
      return mustEqual(reply, { kind: "key_exists" }, "a second key");
    }
    mustEqual(reply, { kind: "key", keyId }, "a new key");
    this.note("key minted");
    this.#touched = true;
    this.keys.push(keyId);
    this.activeKey = keyId;
  }

  revoked(reply: AgentReply): void {
    const keyId = this.activeKey;
    if (this.archivedAt !== null) return mustEqual(reply, { kind: "archived" }, "an archived agent's key");
    if (keyId === null) {
      this.note("no key to revoke");
      return mustEqual(reply, { kind: "no_key" }, "a key that is not there");
    }
    mustEqual(reply, { kind: "key", keyId }, "the key that was revoked");
    this.note("key revoked");
    this.#touched = true;
    this.activeKey = null;
  }

  /** A server replays the create: it delivers the key again in the window, and never after it. */
  replayed(isDelivered: boolean, now: number): void {
    mustEqual(isDelivered, now < UNTIL, "whether a key was delivered again");
  }

  proven(lineage: string, reply: AgentReply, now: number): void {
    const windowOver = now >= UNTIL;
    const proven = windowOver && lineage === this.#lineage;
    mustEqual(reply, { kind: "non_delivery", windowOver, proven }, "a proof of non-delivery");
    if (proven) this.#provenAt ??= now;
    this.note(proven ? "proven" : windowOver ? "not proven" : "not proven in the window");
  }

  archived(by: ArchiveBy, lineage: string, reply: AgentReply, now: number): void {
    const what = `an archive by a ${by.type === "user" ? "person" : "machine"}`;
    if (this.archivedAt !== null) {
      this.note("archived before");
      const mayKnow = by.type === "user" || lineage === this.#lineage;
      const expected = mayKnow
        ? { kind: "archive", changed: false }
        : { kind: "archive_refused", code: "MACHINE_ARCHIVE_DENIED" };
      return mustEqual(reply, expected, `${what}, once more`);
    }
    const code = by.type === "user" ? null : this.#refusal(by, lineage, now);
    if (code !== null) {
      this.note(code);
      return mustEqual(reply, { kind: "archive_refused", code }, what);
    }
    mustEqual(reply, { kind: "archive", changed: true }, what);
    this.note(by.type === "user" ? "archived" : "archived by a machine");
    this.archivedAt = now;
    this.activeKey = null;
    this.#published.push("agent.archived");
  }

  /** In the order that callers are promised; the first that fails answers. */
  #refusal(
    { balance }: Extract<ArchiveBy, { type: "machine" }>,
    lineage: string,
    now: number,
  ): string | null {
    if (lineage !== this.#lineage || this.#touched) return "MACHINE_ARCHIVE_DENIED";
    if (this.#usedAt !== null) {
      this.note("refused to a machine, since it was used");
      return "MACHINE_ARCHIVE_DENIED";
    }
    if (now < UNTIL) return "KEY_STILL_DELIVERABLE";
    if (this.#provenAt === null) return "KEY_DELIVERY_UNPROVEN";
    if (balance === "unreadable") return "BALANCE_UNVERIFIABLE";
    return balance === "zero" ? null : "MACHINE_ARCHIVE_DENIED";
  }

  renamed(name: string, reply: AgentReply): void {
    if (this.archivedAt !== null)
      return mustEqual(reply, { kind: "archived" }, "an archived agent's new name");
    mustEqual(reply, { kind: "renamed" }, "a new name");
    this.name = name;
  }

  /** Its record shows this revision, and its events are in the journal. */
  confirmed(revision: number, state: AgentState): void {
    this.recorded = Math.max(this.recorded, revision);
    mustEqual(state.confirmedRevision, this.recorded, "the revision that the record shows");
    if (this.#published.length > 0 && this.recorded >= this.#archiveRevision) this.#published = [];
  }

  #archiveRevision = Infinity;

  /** Holds the actor against all of that. */
  audit(state: AgentState, now: number): void {
    const { access, archivedAt, outbox, profile: shown, revision, status, walletDetached } = state;
    mustEqual(access.activeKeyId, this.activeKey, "the active key");
    mustEqual(archivedAt, this.archivedAt, "when it was archived");
    mustEqual(access.authenticatedAt, this.#usedAt, "when a key was first used");
    mustEqual(access.touchedByPerson, this.#touched, "whether a person touched its keys");
    mustEqual(access.bundled.provenAt, this.#provenAt, "the proof of non-delivery");
    mustEqual(shown.name, this.name, "its name");
    mustEqual(status, this.status, "its status, as the ledger has said");
    mustEqual(walletDetached, this.detached, "whether its wallet is detached");
    if (this.archivedAt === now && this.#archiveRevision === Infinity) this.#archiveRevision = revision;
    const types = outbox.map(({ type }) => type);
    mustEqual(types, this.#published, "what is published of it");
    this.#auditFollowers(state);
  }

  /** A revision of the record shows one thing; and the ledger is sent every change of what it follows. */
  #auditFollowers(state: AgentState): void {
    const {
      authenticatedAt: _first,
      events: _events,
      updatedAt: _at,
      revision,
      ...record
    } = summarize(state);
    const shown = JSON.stringify(record);
    mustEqual(shown, this.#shown.get(revision) ?? shown, "what one revision shows");
    this.#shown.set(revision, shown);
    const isBehind = state.followedRevision < state.ledgerRevision;
    must(
      isBehind || followedFields(state) === this.#followedFields,
      "a change that the ledger does not receive",
    );
  }

  /** The ledger has followed the agent as it was at this revision. */
  followedBy(revision: number, state: AgentState): void {
    this.followed = Math.max(this.followed, revision);
    mustEqual(state.followedRevision, this.followed, "the revision that the ledger follows");
    if (this.followed >= state.ledgerRevision) this.#followedFields = followedFields(state);
  }
}

/** What the ledger is to know of an agent. */
function followedFields(state: AgentState): string {
  const { revision: _revision, ...followed } = followedOf(state);
  return JSON.stringify(followed);
}
