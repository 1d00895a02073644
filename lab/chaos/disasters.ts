import { setTimeout as sleep } from "node:timers/promises";
import type { Mishap } from "./chain-proxy.ts";
import { ENGINES, type EngineName } from "./engines.ts";
import type { ForeignSender } from "./foreign.ts";
import type { Deployment } from "./deployment.ts";
import type { Random } from "../random.ts";
import type { Accomplices, Disaster, Struck } from "./site.ts";
import type { Role } from "./role-process.ts";

export const DISASTERS = [
  "worker",
  "server",
  "temporal",
  "mongod",
  "anvil",
  "everything",
  "line",
  "hang",
  "clocks",
  "foreign",
  "stalls",
] as const;
export type DisasterName = (typeof DISASTERS)[number];

/** Disasters that a card network meets. */
export const WITHOUT_CHAIN = [
  "worker",
  "server",
  "temporal",
  "mongod",
  "everything",
  "clocks",
  "stalls",
] as const;

/** The line to the chain is disturbed for so long. */
const DISTURBED_MIN_MS = 2_000;
const DISTURBED_MAX_MS = 5_000;

/** Clocks go wrong by so much, either way; receivers of webhooks take what is signed within five minutes. */
const CLOCK_MIN_MS = 60_000;
export const CLOCK_MAX_MS = 240_000;

/** A process stands still for so long. */
const STALLED_MIN_MS = 100;
const STALLED_MAX_MS = 5_000;
/** Stalls of a process in a round, with so much time in between. */
const STALLS_MAX = 3;
const UNSTALLED_MAX_MS = 500;

const FOREIGN_MAX = 3;
/** So long nothing of the service reaches the chain, and what it signs meanwhile has a nonce that may be taken. */
const UNSENT_MS = 700;

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

/** The disaster of that name for a deployment. */
export const disasterOf = (name: DisasterName, deployment: Deployment): Disaster => ({
  areClocksCorrect: name !== "clocks",
  strike: (accomplices, random) => strike(name, deployment, accomplices, random),
});

function strike(
  name: DisasterName,
  deployment: Deployment,
  { foreign, stopAll }: Accomplices,
  random: Random,
): Struck {
  switch (name) {
    case "worker":
    case "server":
      return killRoles(deployment, name, random);
    case "temporal":
    case "mongod":
    case "anvil":
      return killEngine(deployment, name);
    case "everything":
      return killEverything(deployment);
    case "line":
      return disturbLine(deployment, random);
    case "hang":
      return stopWhileHanging(deployment, stopAll, random);
    case "clocks":
      return setClocks(deployment, random);
    case "foreign":
      return takeNonces(deployment, foreign, random);
    case "stalls":
      return stallRoles(deployment, stopAll, random);
  }
}

/** Some of them, or all. */
function killRoles(deployment: Deployment, role: Role, random: Random): Struck {
  const roles = deployment.rolesOf(role);
  const victims = random.shuffled(roles).slice(0, random.between(1, roles.length));
  for (const victim of victims) victim.kill();
  const what = `kill -9 ${victims.map((victim) => victim.name).join(", ")}`;
  return { what, kills: victims.length, over: deployment.ready() };
}

const killEngine = (deployment: Deployment, name: EngineName): Struck => ({
  what: `kill -9 ${name}`,
  kills: 1,
  over: deployment.engines.killAndAwaitRestart(name),
});

/** As when the machine loses its power. */
function killEverything(deployment: Deployment): Struck {
  for (const role of deployment.roles) role.kill();
  const engines = ENGINES.map((name) => deployment.engines.killAndAwaitRestart(name));
  return {
    what: "kill -9 everything at once",
    kills: deployment.roles.length + ENGINES.length,
    over: Promise.all([...engines, deployment.ready()]),
  };
}

function disturbLine({ line }: Deployment, random: Random): Struck {
  const ms = random.between(DISTURBED_MIN_MS, DISTURBED_MAX_MS);
  const isCut = random.chance(0.3);
  line.behave(() => (isCut ? "cut-before" : random.pick(ANY_MISHAP)));
  const over = sleep(ms).then(() => line.behave(() => "pass"));
  const what = `line to the chain ${isCut ? "cut" : "disturbed"} for ${(ms / 1_000).toFixed(1)} s`;
  return { what, kills: 0, over };
}

/** Everybody who may be stopped is stopped while the chain says nothing, and some are started again while it still does not. */
function stopWhileHanging({ line }: Deployment, stopAll: Accomplices["stopAll"], random: Random): Struck {
  const ms = random.between(DISTURBED_MIN_MS, DISTURBED_MAX_MS);
  line.behave(() => "silence");
  const over = Promise.all([sleep(ms).then(() => line.behave(() => "pass")), stopAll(ms)]);
  return {
    what: `the chain hangs for ${(ms / 1_000).toFixed(1)} s, and agents are stopped`,
    kills: 0,
    over,
  };
}

/** Some roles' clocks, forward or back, and right again. */
function setClocks(deployment: Deployment, random: Random): Struck {
  const ms = random.between(DISTURBED_MIN_MS, DISTURBED_MAX_MS);
  const victims = random.shuffled(deployment.roles).slice(0, random.between(1, deployment.roles.length));
  const wrong = victims.map((role) => {
    const offsetMs = random.between(CLOCK_MIN_MS, CLOCK_MAX_MS) * (random.chance(0.5) ? 1 : -1);
    role.setClock(offsetMs);
    return `${role.name} by ${String(Math.round(offsetMs / 1_000))} s`;
  });
  const over = sleep(ms).then(() => victims.forEach((role) => role.setClock(0)));
  return { what: `clocks set for ${(ms / 1_000).toFixed(1)} s: ${wrong.join(", ")}`, kills: 0, over };
}

/** Some roles, each at moments of its own, stand still between any two steps, while agents are stopped. */
function stallRoles(deployment: Deployment, stopAll: Accomplices["stopAll"], random: Random): Struck {
  const victims = random.shuffled(deployment.roles).slice(0, random.between(1, deployment.roles.length));
  const plans = victims.map((role) => ({
    role,
    stalls: Array.from({ length: random.between(1, STALLS_MAX) }, () => ({
      afterMs: random.between(0, UNSTALLED_MAX_MS),
      ms: random.between(STALLED_MIN_MS, STALLED_MAX_MS),
    })),
  }));
  const stall = async ({ role, stalls }: (typeof plans)[number]): Promise<void> => {
    for (const { afterMs, ms } of stalls) {
      await sleep(afterMs);
      await role.suspend(ms);
    }
  };
  const what = plans.map(
    ({ role, stalls }) => `${role.name} ${stalls.map(({ ms }) => seconds(ms)).join(" + ")} s`,
  );
  return {
    what: `SIGSTOP, and agents are stopped: ${what.join(", ")}`,
    kills: 0,
    over: Promise.all([...plans.map(stall), stopAll(STALLED_MAX_MS)]),
  };
}

const seconds = (ms: number): string => (ms / 1_000).toFixed(1);

/** A foreign sender uses the service's key, at times for what the service had signed and could not send yet. */
function takeNonces({ line }: Deployment, foreign: ForeignSender, random: Random): Struck {
  const times = random.between(1, FOREIGN_MAX);
  const take = async (): Promise<void> => {
    for (let time = 0; time < times; time += 1) {
      line.behave((body) => (body.includes("eth_sendRawTransaction") ? "cut-before" : "pass"));
      await sleep(UNSENT_MS);
      await foreign.take();
      line.behave(() => "pass");
      await sleep(UNSENT_MS);
    }
  };
  return { what: `${String(times)} foreign transactions of the service's key`, kills: 0, over: take() };
}
