import { mustBeSame, mustEqual } from "../../../lab/simulation/audit/violation.ts";
import type { RecordedCap } from "../../../src/domain/ledger/commands.ts";
import type { Account, Ledger, Level } from "../../../src/domain/ledger/state.ts";
import { inBuckets } from "../../../src/domain/ledger/usage.ts";
import { SECOND } from "../support/actor.ts";
import { shownOf } from "../support/account.ts";
import { changePolicy, life, openAccount, record } from "./accounts.ts";
import type { Action } from "./actions.ts";
import { broken, projectCap, rules, teamCap } from "./levels.ts";
import { ask, confirm, rail, resolve } from "./outcomes.ts";
import { pay } from "./paying.ts";
import { BOUNDS, type LedgerDomain, LedgerWorld, SOUND } from "./world.ts";

/** One random life of a project's ledger, with its book beside it. Throws `Violation` where the two differ. */
export class LedgerRun {
  readonly #world: LedgerWorld;

  constructor(domain: LedgerDomain = SOUND) {
    this.#world = new LedgerWorld(domain);
    for (const team of [0, 0, 1, 1]) openAccount(this.#world, team);
  }

  get world(): LedgerWorld {
    return this.#world;
  }

  get tally(): ReadonlyMap<string, number> {
    return this.#world.tally;
  }

  play(actions: readonly Action[]): void {
    const world = this.#world;
    for (const action of actions) {
      act(world, action);
      world.model.audit(world.ledger, world.now);
    }
  }
}

function act(world: LedgerWorld, action: Action): void {
  switch (action.kind) {
    case "pay":
      return pay(world, action);
    case "rail":
      return rail(world, action);
    case "confirm":
      return confirm(world, action);
    case "resolve":
      return resolve(world, action);
    case "policy":
      return changePolicy(world, action);
    case "life":
      return life(world, action);
    case "open":
      return openAccount(world, action.team);
    case "project_cap":
      return projectCap(world, action);
    case "team_cap":
      return teamCap(world, action);
    case "broken":
      return broken(world, action);
    case "rules":
      return rules(world, action);
    case "ask":
      return ask(world, action);
    case "record":
      return record(world, action);
    case "wait":
      world.now += action.ms;
      return;
    case "again":
      return again(world);
    case "roll_over":
      return rollOver(world);
  }
}

/** It gets its first answer again, or of a payment that is closed by now where to look. */
function again(world: LedgerWorld): void {
  if (world.last === null) return;
  const { at, command, reply: first } = world.last;
  // Later it is no repeat of the engine's.
  if (Math.abs(world.now - at) > 60 * SECOND) return void (world.last = null);
  const reply = world.tryToJudge(command);
  world.note("again");
  if (reply.kind === "not_open") return;
  if (first.kind === "payment" && reply.kind === "payment") {
    return mustEqual(reply.changed, first.changed, "what comes again of a payment");
  }
  if (first.kind === "replaced" && reply.kind === "replaced") {
    mustEqual(reply.version, first.version, "what comes again of a budget");
    return mustEqual(reply.caps, unrecordedIn(world.ledger), "the caps that are to be in the records");
  }
  if (first.kind === "account_status" && reply.kind === "account_status") {
    // Its fence is that of what is on its way by now.
    const { fence: _first, ...before } = first;
    const { fence: _again, ...after } = reply;
    return mustEqual(after, before, "what comes again of a pause");
  }
  mustEqual(JSON.stringify(reply), JSON.stringify(first), "what comes again");
}

function unrecordedIn({ project, teams }: Ledger): RecordedCap[] {
  const levels: (readonly [string | null, Level])[] = [[null, project], ...teams];
  return levels
    .filter(([, level]) => level.recordedCapVersion !== level.cap.version)
    .map(([teamId, { cap }]) => ({ teamId, cap }));
}

/** The ledger goes on in a new run, as the engine carries it over. */
function rollOver(world: LedgerWorld): void {
  const { domain, ledger } = world;
  world.note("roll-over");
  const carried: ReturnType<typeof domain.pack> = JSON.parse(JSON.stringify(domain.pack(ledger, world.now)));
  world.ledger = domain.unpack(carried, BOUNDS);
  mustBeSame(carriedOf(world.ledger, world.now), carriedOf(ledger, world.now), "a roll-over lost something");
}

/** What goes over to a new run: not the place of keys that are forgotten, nor what was weighed earlier. */
function carriedOf(ledger: Ledger, now: number): unknown {
  const { accounts, keys, weighedAt: _at, weightBytes: _bytes, ...rest } = shownOf(ledger);
  const order = keys.order.filter(([agentId, keyHash]) => keys.byAgent.get(agentId)?.has(keyHash) === true);
  return {
    ...rest,
    keys: { ...keys, order },
    accounts: new Map([...accounts].map(([id, each]) => [id, timed(each, now)])),
  };
}

function timed({ weightBytes: _bytes, ...account }: Account, now: number): unknown {
  const { usage } = account;
  return { ...account, usage: { ...usage, counts: inBuckets(usage, now) } };
}
