import type { CommandOf, LedgerReply } from "../../../src/domain/ledger/commands.ts";
import { AccountModel } from "./account-model.ts";
import type { WorldModel } from "./books.ts";
import type { LedgerShown } from "./observer.ts";
import { leftAfter, shownAt } from "./increases-model.ts";
import { must, mustEqual } from "./violation.ts";

/** An agent that a stop has stopped: how often it had been paused or resumed then, and the key that it lost. */
export interface StoppedModel {
  readonly agentId: string;
  readonly turns: number;
  readonly revokedKeyId: string | null;
}

/** Expectations about accounts, their policies and status, and the budgets of project and teams. */
export class AccountAudit {
  readonly #books: WorldModel;

  constructor(books: WorldModel) {
    this.#books = books;
  }

  expectOpen(command: CommandOf<"open_account">, reply: LedgerReply, { bounds }: LedgerShown): void {
    const { accounts } = this.#books;
    const known = accounts.has(command.agentId);
    if (reply.kind === "project_full") {
      this.#books.count("project full");
      const mayBeThere = accounts.size;
      return must(!known && mayBeThere >= bounds.accounts, "a project that is not full took no agent");
    }
    mustEqual(reply, { kind: "opened", changed: !known }, "an account");
    if (known) return;
    const live = [...accounts.values()].filter(({ status }) => status !== "closed");
    must(live.length < bounds.accounts, "more accounts than there may be");
    accounts.set(command.agentId, new AccountModel(command, this.#books.clock));
  }

  expectPolicy(command: CommandOf<"change_policy">, reply: LedgerReply, now: number): void {
    const model = this.#books.account(command.agentId);
    if (model.status === "closed") return mustEqual(reply.kind, "no_account", "a closed account's policy");
    if (command.version !== model.version) {
      this.#books.count("stale policy");
      return mustEqual(reply, { kind: "version_conflict", version: model.version }, "a stale version");
    }
    const { increases: increasesBefore, policy: before } = model;
    const { spendLimits = [], ...policy } = { ...before, ...command.patch };
    model.policy = { ...policy, ...(spendLimits.length === 0 ? {} : { spendLimits }) };
    model.increases = leftAfter(increasesBefore, before, model.policy);
    model.version += 1;
    if (model.policy.budgetCents !== before.budgetCents) this.#changeChildOf(model.teamId);
    this.#books.count("policy changed");
    must(reply.kind === "policy", `a new policy was answered ${reply.kind}`);
    mustEqual(reply.policyVersion, model.version, "the version of a new policy");
    const at = this.#books.windowsAt(now);
    const after = { ...model.policy, increases: model.increases };
    mustEqual(shownAt(reply.policy, at), shownAt(after, at), "a new policy");
    const was = { ...before, increases: increasesBefore };
    mustEqual(shownAt(reply.before, at), shownAt(was, at), "the policy before a new one");
  }

  expectStatus(command: CommandOf<"pause" | "resume">, reply: LedgerReply, now: number): void {
    const model = this.#books.account(command.agentId);
    if (model.status === "closed") return mustEqual(reply.kind, "no_account", "a closed account's status");
    const status = command.kind === "pause" ? "paused" : "active";
    const changed = model.status !== status;
    must(reply.kind === "account_status", `a change of status was answered ${reply.kind}`);
    mustEqual([reply.status, reply.changed], [status, changed], "a change of status");
    const inFlight = status === "active" ? [] : model.inFlight().map(({ id }) => id);
    const fenced = reply.fence === null ? [] : Object.values(reply.fence.payments).flat();
    mustEqual(inOrder(fenced), inOrder(inFlight), "what a pause fences");
    if (reply.fence !== null) model.fenced(reply.fence.fence);
    if (changed) this.#setStatus(model, status, now);
  }

  #setStatus(model: AccountModel, status: "active" | "paused", now: number): void {
    model.status = status;
    model.turns += 1;
    if (status === "active") this.#books.life(model.agentId).pausedAtSequence = null;
    if (status === "paused" && model.keyId === null) model.withdraw();
    model.journal.happened(status === "paused" ? "agent.paused" : "agent.resumed", now);
    this.#books.count(status === "paused" ? "paused" : "resumed");
  }

  /** All agents in one decision. Answers what was stopped, for when the caller is answered. */
  expectStopped(
    { revokeKeys, teamId }: CommandOf<"stop_accounts">,
    reply: LedgerReply,
    now: number,
  ): readonly StoppedModel[] {
    must(reply.kind === "stopped", `a stop was answered ${reply.kind}`);
    let paused = 0;
    const fences = new Map(
      reply.fences.flatMap(({ fence, payments }) =>
        Object.values(payments)
          .flat()
          .map((id) => [id, fence] as const),
      ),
    );
    const inFlight: string[] = [];
    const stopped: StoppedModel[] = [];
    for (const model of this.#books.accounts.values()) {
      if (teamId !== null && model.teamId !== teamId) continue;
      const { agentId, keyId } = model;
      if (model.status === "closed") {
        model.withdraw();
        inFlight.push(...this.#fenced(model, fences));
        continue;
      }
      const revokedKeyId = revokeKeys ? keyId : null;
      if (revokedKeyId !== null) {
        model.stoppedKeys.add(revokedKeyId);
        model.keyId = null;
      }
      if (model.status === "active") {
        paused += 1;
        this.#setStatus(model, "paused", now);
      } else if (revokedKeyId !== null) model.withdraw();
      inFlight.push(...this.#fenced(model, fences));
      stopped.push({ agentId, turns: model.turns, revokedKeyId });
    }
    const revoked = stopped.filter(({ revokedKeyId }) => revokedKeyId !== null).length;
    mustEqual([reply.paused, reply.revoked], [paused, revoked], "a stop");
    mustEqual(inOrder([...fences.keys()]), inOrder(inFlight), "what a stop fences");
    if (revoked > 0) this.#books.count("keys revoked by a stop");
    return stopped;
  }

  /** Payments that an account has in flight, which its stop fences. */
  #fenced(model: AccountModel, fences: ReadonlyMap<string, number>): readonly string[] {
    const ids = model.inFlight().map(({ id }) => id);
    for (const fence of new Set(ids.flatMap((id) => fences.get(id) ?? []))) model.fenced(fence);
    return ids;
  }

  expectFollowed(command: CommandOf<"follow_agent">, reply: LedgerReply, now: number): void {
    const model = this.#books.account(command.agentId);
    must(reply.kind === "followed", `what is to be followed was answered ${reply.kind}`);
    if (model.status === "closed" || command.revision <= model.followedRevision)
      return mustEqual(reply.ended, [], "what an old end has ended");
    model.followedRevision = command.revision;
    model.name = command.name;
    if (!command.isArchived) {
      const isStopped = command.keyId !== null && model.stoppedKeys.has(command.keyId);
      model.keyId = isStopped ? null : command.keyId;
      if (isStopped) this.#books.count("a revoked key did not come back");
      if (model.keyId === null && model.status === "paused") model.withdraw();
      return mustEqual(reply.ended, [], "what is ended of an agent that lives");
    }
    const held = model.held();
    mustEqual([...reply.ended].toSorted(), held.map(({ id }) => id).toSorted(), "what closing has ended");
    for (const payment of held) {
      const status = now >= payment.expiresAt ? "expired" : "denied";
      const change = (): void => void Object.assign(payment, { status, isOver: true });
      this.#books.change(model, payment, { by: "person", change, now });
    }
    if (model.status === "paused") model.withdraw();
    model.status = "closed";
    model.keyId = null;
    this.#books.count(held.length > 0 ? "closed with payments on hold" : "closed");
  }

  /** Whole, or not at all. */
  expectReplaced(command: CommandOf<"replace_project" | "replace_team">, reply: LedgerReply): void {
    const own = command.kind === "replace_team" ? command.teamId : null;
    const level = this.#books.level(own);
    if (command.version !== level.version) {
      this.#books.count("stale budget");
      return mustEqual(reply, { kind: "version_conflict", version: level.version }, "a stale budget");
    }
    must(reply.kind === "replaced", `a replacement was answered ${reply.kind}`);
    this.#books.count("budget replaced");
    if (own !== null && level.capCents !== command.capCents) this.#changeChildOf(null);
    this.#setCap(own, command.capCents);
    const before = { spendLimits: level.spendLimits };
    level.spendLimits = command.spendLimits ?? level.spendLimits;
    level.increases = leftAfter(level.increases, before, level);
    const teams = command.kind === "replace_project" ? command.teams : [];
    for (const { capCents, teamId } of teams) {
      if (this.#books.level(teamId).capCents !== capCents) this.#setCap(teamId, capCents);
    }
    for (const { agentId, budgetCents } of command.kind === "replace_team" ? command.agents : []) {
      const model = this.#books.accounts.get(agentId);
      if (model === undefined || model.status === "closed" || model.teamId !== own) continue;
      if (model.policy.budgetCents === budgetCents) continue;
      model.policy = { ...model.policy, budgetCents };
      model.version += 1;
      this.#books.count("budget by team");
    }
    mustEqual(reply.version, level.version, "the version of a replaced budget");
  }

  /** Raises the parent's version: a replacement by an earlier reader of the parent's budget would undo this. */
  #changeChildOf(parent: string | null): void {
    this.#books.level(parent).version += 1;
    this.#books.count(parent === null ? "project stale by a team's cap" : "team stale by an agent's budget");
  }

  #setCap(teamId: string | null, capCents: number | null): void {
    const level = this.#books.level(teamId);
    level.capCents = capCents;
    level.version += 1;
  }
}

const inOrder = (ids: readonly string[]): readonly string[] => ids.toSorted();
