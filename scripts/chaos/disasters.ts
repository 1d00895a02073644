import { setTimeout as sleep } from "node:timers/promises";
import type { Mishap } from "./chain-proxy.ts";
import { ENGINES, type EngineName } from "./engines.ts";
import type { Place } from "./place.ts";
import type { Random } from "../random.ts";
import type { Role } from "./role-process.ts";

export const DISASTERS = ["worker", "server", "temporal", "mongod", "anvil", "everything", "line"] as const;
export type DisasterName = (typeof DISASTERS)[number];

/** The line to the chain is disturbed for so long. */
const DISTURBED_MIN_MS = 2_000;
const DISTURBED_MAX_MS = 5_000;

const ANY_MISHAP: readonly Mishap[] = [
  "pass",
  "pass",
  "cut-before",
  "cut-after",
  "twice",
  "late",
  "too-many",
  "garbage",
  "nonsense",
  "silence",
];

export interface Struck {
  /** What exactly was done, for people. */
  readonly what: string;
  /** Processes that were killed. */
  readonly kills: number;
  /** Resolves when all that was killed can be used again. */
  readonly over: Promise<unknown>;
}

/** Does it, at once. */
export function strike(name: DisasterName, place: Place, random: Random): Struck {
  switch (name) {
    case "worker":
    case "server":
      return killRoles(place, name, random);
    case "temporal":
    case "mongod":
    case "anvil":
      return killEngine(place, name);
    case "everything":
      return killEverything(place);
    case "line":
      return disturbLine(place, random);
  }
}

/** Some of them, or all. */
function killRoles(place: Place, role: Role, random: Random): Struck {
  const roles = place.rolesOf(role);
  const victims = random.shuffled(roles).slice(0, random.between(1, roles.length));
  for (const victim of victims) victim.kill();
  const what = `kill -9 ${victims.map((victim) => victim.name).join(", ")}`;
  return { what, kills: victims.length, over: place.ready() };
}

const killEngine = (place: Place, name: EngineName): Struck => ({
  what: `kill -9 ${name}`,
  kills: 1,
  over: place.engines.killAndComeBack(name),
});

/** As when the machine loses its power. */
function killEverything(place: Place): Struck {
  for (const role of place.roles) role.kill();
  const engines = ENGINES.map((name) => place.engines.killAndComeBack(name));
  return {
    what: "kill -9 everything at once",
    kills: place.roles.length + ENGINES.length,
    over: Promise.all([...engines, place.ready()]),
  };
}

function disturbLine({ line }: Place, random: Random): Struck {
  const ms = random.between(DISTURBED_MIN_MS, DISTURBED_MAX_MS);
  const isCut = random.chance(0.3);
  line.behave(() => (isCut ? "cut-before" : random.pick(ANY_MISHAP)));
  const over = sleep(ms).then(() => line.behave(() => "pass"));
  const what = `line to the chain ${isCut ? "cut" : "disturbed"} for ${(ms / 1_000).toFixed(1)} s`;
  return { what, kills: 0, over };
}
