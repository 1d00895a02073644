import { setTimeout as sleep } from "node:timers/promises";
import type { Accomplices, Disaster } from "../chaos/site.ts";
import type { Random } from "../random.ts";
import { type Cluster, renewInTurn } from "./cluster.ts";
import type { Member } from "./member.ts";
import { restoreEngines } from "./restore.ts";
import { rotateKeys } from "./rotate.ts";

const HALT_MS = 10_000;
const QUIET_MS = 20_000;

interface Event {
  readonly what: string;
  readonly kills: number;
  readonly isQuiet?: boolean;
  readonly happen: (cluster: Cluster, random: Random, accomplices: Accomplices) => Promise<unknown>;
}

const EVENTS = {
  none: { what: "nothing", kills: 0, isQuiet: true, happen: () => sleep(QUIET_MS) },
  worker: {
    what: "kill -9 of a worker",
    kills: 1,
    happen: ({ workers }, random) => killed([random.pick(workers)]),
  },
  workers: { what: "kill -9 of both workers", kills: 2, happen: ({ workers }) => killed(workers) },
  server: {
    what: "kill -9 of a server",
    kills: 1,
    happen: ({ servers }, random) => killed([random.pick(servers)]),
  },
  temporal: {
    what: "kill -9 of a Temporal process",
    kills: 1,
    happen: ({ temporal }, random) => random.pick(temporal).killAndAwaitRestart(),
  },
  "step-down": { what: "step-down of the MongoDB primary", kills: 0, happen: ({ set }) => set.stepDown() },
  primary: { what: "kill -9 of the MongoDB primary", kills: 1, happen: ({ set }) => set.killPrimary() },
  absent: {
    what: "the first mongod of the address away while servers start",
    kills: 0,
    happen: async ({ servers, set }) => {
      await away(set.first, () => renewInTurn(servers));
      await set.secondaries(2);
    },
  },
  database: {
    what: "PostgreSQL halted for 10 s",
    kills: 0,
    happen: ({ database }) => database.halt(HALT_MS),
  },
  "roll-workers": {
    what: "workers of a new build",
    kills: 0,
    happen: (cluster) => cluster.replaceWorkers(),
  },
  "roll-servers": {
    what: "servers one by one",
    kills: 0,
    happen: ({ servers }) => renewInTurn(servers),
  },
  rotate: {
    what: "the master key rotated; kill -9 of the command, a server and a worker",
    kills: 3,
    happen: rotateKeys,
  },
  restore: {
    what: "both engines restored, Temporal from the older backup",
    kills: 0,
    happen: (cluster) => restoreEngines(cluster),
  },
  "restore-later": {
    what: "the same three days later",
    kills: 0,
    happen: (cluster) => restoreEngines(cluster, 3),
  },
} satisfies Record<string, Event>;

export type EventName = keyof typeof EVENTS;
export const EVENT_NAMES = Object.keys(EVENTS).filter((name): name is EventName => name in EVENTS);

/** The event of that name, as a disaster of a round. */
export function eventOf(name: EventName, cluster: Cluster): Disaster {
  const { happen, isQuiet = false, kills, what }: Event = EVENTS[name];
  return {
    areClocksCorrect: true,
    isQuiet,
    strike: (accomplices, random) => ({ what, kills, over: happen(cluster, random, accomplices) }),
  };
}

interface Killable {
  kill(): void;
  ready(): Promise<void>;
}

async function killed(roles: readonly Killable[]): Promise<void> {
  for (const role of roles) role.kill();
  await Promise.all(roles.map((role) => role.ready()));
}

/** Keeps it away meanwhile, and a little longer. */
async function away(member: Member, work: () => Promise<void>): Promise<void> {
  await member.stop();
  try {
    await work();
    await sleep(1_000);
  } finally {
    await member.start();
  }
}
