import { mustBeSame } from "../../../lab/simulation/audit/violation.ts";
import { isDeliverable } from "../../../src/domain/agent/access.ts";
import type { AgentCommand, AgentReply } from "../../../src/domain/agent/commands.ts";
import { handle } from "../../../src/domain/agent/handle.ts";
import { type AgentState, initialAgentState } from "../../../src/domain/agent/state.ts";
import { CREATOR, DELIVERY_WINDOW_MS, FIRST_KEY, STRANGER } from "../support/agent.ts";
import { NOON, profile } from "../support/actor.ts";
import type { Action, ActionOf, ArchiveBy, Life } from "./actions.ts";
import { AgentModel } from "./book.ts";

/** What a run drives: the domain, or a faulty one. */
export interface LifeDomain {
  readonly handle: typeof handle;
  readonly isDeliverable: typeof isDeliverable;
  /** How a state goes through continue-as-new. */
  readonly rollOver: (state: AgentState) => AgentState;
}

function throughJson(state: AgentState): AgentState {
  const carried: AgentState = JSON.parse(JSON.stringify(state));
  return carried;
}
export const SOUND_LIFE: LifeDomain = { handle, isDeliverable, rollOver: throughJson };

const UNTIL = NOON + DELIVERY_WINDOW_MS;
const lineageOf = (own: boolean): string => (own ? CREATOR : STRANGER);

/** One random life of an agent, with its book beside it. Throws `Violation` where the two differ. */
export class LifeRun {
  readonly #domain: LifeDomain;
  readonly #life: Life;
  readonly #model: AgentModel;
  #state: AgentState;
  #now = NOON;
  #statusRevision = 0;

  constructor(life: Life, domain: LifeDomain = SOUND_LIFE) {
    this.#domain = domain;
    this.#life = life;
    const lineageId = life.origin === "machine" ? CREATOR : null;
    const firstKey = { keyId: FIRST_KEY, lineageId, deliverableUntil: UNTIL };
    this.#state = initialAgentState(profile, firstKey, NOON);
    this.#model = new AgentModel(life.origin, this.#state);
  }

  get tally(): ReadonlyMap<string, number> {
    return this.#model.tally;
  }

  play(): void {
    for (const action of this.#life.actions) {
      this.#do(action);
      this.#model.audit(this.#state, this.#now);
    }
  }

  #handle(command: AgentCommand): AgentReply {
    return this.#domain.handle(this.#state, command, this.#now);
  }

  #do(action: Action): void {
    const model = this.#model;
    switch (action.kind) {
      case "authenticate": {
        const keyId = model.keys[action.pick] ?? "akey_of_another";
        return model.authenticated(keyId, this.#handle({ kind: "authenticate", keyId }), this.#now);
      }
      case "mint":
        return this.#mint(`akey_${model.keys.length}`);
      case "mint_again":
        return this.#mint(model.keys.at(-1) ?? FIRST_KEY);
      case "revoke":
        return model.revoked(this.#handle({ kind: "revoke_key" }));
      case "replay":
        return this.#replay(action.own);
      case "prove":
        return this.#prove(lineageOf(action.own));
      case "archive":
        return this.#archive(action.by);
      case "rename": {
        const { name } = action;
        return model.renamed(name, this.#handle({ kind: "rename", name }));
      }
      case "status":
        return this.#stand(action);
      case "close_window":
        if (this.#now >= UNTIL) this.#state.access.bundled.erased = true;
        return;
      case "detached":
        this.#handle({ kind: "confirm_detached" });
        model.detached ||= model.archivedAt !== null;
        return;
      case "recorded":
        return this.#recorded(action.behind);
      case "followed":
        return this.#followed(action.behind);
      case "time":
        this.#now += action.ms;
        return;
      case "edge":
        this.#now = Math.max(this.#now, UNTIL + action.plusMs);
        return;
      case "roll_over":
        return this.#rollOver();
    }
  }

  #mint(keyId: string): void {
    this.#model.minted(keyId, this.#handle({ kind: "mint_key", keyId }));
  }

  /** Another lineage's same idempotency key is another create, which this agent never sees. */
  #replay(own: boolean): void {
    if (this.#life.origin !== "machine" || !own) return;
    const isDelivered = this.#domain.isDeliverable(UNTIL, this.#now);
    this.#model.replayed(isDelivered, this.#now);
    if (!isDelivered) this.#prove(CREATOR);
  }

  #prove(lineageId: string): void {
    this.#model.proven(lineageId, this.#handle({ kind: "prove_non_delivery", lineageId }), this.#now);
  }

  #archive(by: ArchiveBy): void {
    const lineageId = lineageOf(by.type === "user" || by.own);
    const archiver =
      by.type === "user" ? by : ({ type: "organization_key", lineageId, balance: by.balance } as const);
    const reply = this.#handle({ kind: "archive", by: archiver });
    this.#model.archived(by, lineageId, reply, this.#now);
  }

  /** The ledger has paused or resumed the account; an older word comes late. */
  #stand({ isOld, status }: ActionOf<"status">): void {
    const revision = isOld ? this.#statusRevision : (this.#statusRevision += 1);
    this.#handle({ kind: "follow_status", status, revision, revokedKeyId: null });
    if (!isOld) this.#model.status = status;
  }

  #recorded(behind: number): void {
    const revision = Math.max(0, this.#state.revision - behind);
    this.#handle({ kind: "confirm_record", revision });
    this.#model.confirmed(revision, this.#state);
  }

  #followed(behind: number): void {
    const revision = Math.max(0, this.#state.revision - behind);
    this.#handle({ kind: "confirm_followed", revision });
    this.#model.followedBy(revision, this.#state);
  }

  #rollOver(): void {
    const before = this.#state;
    this.#state = this.#domain.rollOver(before);
    mustBeSame(this.#state, before, "a roll-over lost something");
  }
}
