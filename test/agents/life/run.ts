import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import * as fc from "fast-check";
import { z } from "zod";
import { type AgentDocument, COLLECTIONS, type EventDocument } from "../../../src/store/documents.ts";
import { onceReachable } from "../../support/api.ts";
import { codeOf } from "../../support/contract-api.ts";
import { organizationKey, type TestOrganizationKey, until, type World } from "../../support/world.ts";
import { type Action, after, type Agent, created, LOST, type Seen } from "./model.ts";

/** Calls that go off at the same time, some time after the ones before. */
export interface Round {
  readonly pauseMs: number;
  readonly actions: readonly Action[];
}

const KEYS_MAX = 4;
const ROUNDS_MIN = 5;
const ROUNDS_MAX = 9;
const AT_ONCE_MAX = 3;

const oneOf = <const T extends string>(...names: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...names);
const use = fc.record({ kind: oneOf("use"), key: fc.nat(KEYS_MAX - 1) });
const anything: fc.Arbitrary<Action> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: oneOf("create") }) },
  { weight: 4, arbitrary: use },
  { weight: 5, arbitrary: fc.record({ kind: oneOf("mint", "revoke") }) },
  { weight: 4, arbitrary: fc.record({ kind: oneOf("pause", "resume"), by: oneOf("person", "machine") }) },
  { weight: 2, arbitrary: fc.record({ kind: oneOf("archive"), by: oneOf("machine", "stranger") }) },
  { weight: 1, arbitrary: fc.record({ kind: oneOf("archive"), by: oneOf("person") }) },
);

/** Half of the agents are left alone by people and by themselves, so that machines come to archive them. */
const quiet: fc.Arbitrary<Action> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: oneOf("create") }) },
  { weight: 3, arbitrary: fc.record({ kind: oneOf("archive"), by: oneOf("machine", "stranger") }) },
  { weight: 1, arbitrary: fc.record({ kind: oneOf("pause", "resume"), by: oneOf("person", "machine") }) },
);

/** Pauses on both sides of the window's end. */
const roundsOf = (one: fc.Arbitrary<Action>, windowMs: number): fc.Arbitrary<Round[]> =>
  fc.array(
    fc.record({
      pauseMs: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.nat(windowMs)),
      actions: fc.array(one, { minLength: 1, maxLength: AT_ONCE_MAX }),
    }),
    { minLength: ROUNDS_MIN, maxLength: ROUNDS_MAX },
  );

export const lives = (windowMs: number): fc.Arbitrary<Round[]> =>
  fc.oneof(roundsOf(anything, windowMs), roundsOf(quiet, windowMs)).map((rounds) => [
    { pauseMs: 0, actions: [{ kind: "create" }, { kind: "create" }] },
    ...rounds,
    // The race of the first use against a machine's archive.
    { pauseMs: windowMs, actions: [{ kind: "create" }] },
    {
      pauseMs: 0,
      actions: [
        { kind: "archive", by: "machine" },
        { kind: "use", key: 0 },
      ],
    },
  ]);

const carrying = z.object({
  apiKey: z.string().nullable().default(null),
  keyDelivery: z.string().optional(),
  agent: z.object({ id: z.string(), key: z.object({ createdAt: z.string() }).nullable() }).optional(),
});

const SETTLED_MS = 120_000;
const TRIES_MAX = 30;
const RETRY_MS = 300;

/** One agent's life on a real service, held against the model call by call. */
export class Life {
  readonly #world: World;
  readonly #windowMs: number;
  readonly #machine: TestOrganizationKey;
  readonly #stranger: TestOrganizationKey;
  readonly #create: Readonly<Record<string, unknown>>;
  readonly #keys: string[] = [];
  readonly #transcript: string[] = [];
  #id = "";
  #possible: readonly Agent[] = [];

  private constructor(
    world: World,
    windowMs: number,
    keys: readonly [TestOrganizationKey, TestOrganizationKey],
  ) {
    this.#world = world;
    this.#windowMs = windowMs;
    [this.#machine, this.#stranger] = keys;
    const { teamId } = world.organization;
    this.#create = { name: "Agent", teamId, budgetCents: 1_000, idempotencyKey: randomUUID() };
  }

  /** The stranger's key is none of the machine's that this life begins with. */
  static async begin(world: World, windowMs: number, stranger: TestOrganizationKey): Promise<Life> {
    return new Life(world, windowMs, [await organizationKey(world), stranger]);
  }

  async live(rounds: readonly Round[]): Promise<void> {
    for (const { actions, pauseMs } of rounds) {
      await sleep(pauseMs);
      const seen = await Promise.all(actions.map((one) => this.#call(one)));
      this.#transcript.push(seen.map(line).join(" ‖ "));
      this.#possible = after(...this.#begin(seen.filter((one) => one.status !== 0)));
      expect(
        this.#possible,
        `no order explains the last of\n${this.#transcript.join("\n")}`,
      ).not.to.have.lengthOf(0);
    }
    await this.#expectEnd();
  }

  /** The first create of all makes the agent that the model begins with. */
  #begin(seen: readonly Seen[]): [readonly Agent[], readonly Seen[]] {
    const [maker] = this.#possible.length > 0 ? [] : seen.toSorted((a, b) => b.status - a.status);
    if (maker === undefined) return [this.#possible, seen];
    // Where one was told to come again, what it had begun may have been finished for another.
    const isMade = maker.status === 201 || (maker.status === 200 && seen.some((one) => one.isRetried));
    expect(isMade, this.#transcript.join("\n")).to.equal(true);
    // A slow create's first answer may come after the window, without the key that a replay has got meanwhile.
    expect(maker.key === null, this.#transcript.join("\n")).to.equal(maker.isExpired);
    const firstKey = seen.find(({ key }) => key !== null)?.key ?? LOST;
    return [[created(firstKey, this.#deliverableUntil)], seen.filter((one) => one !== maker)];
  }

  #deliverableUntil = 0;

  async #call(action: Action): Promise<Seen> {
    const from = Date.now();
    const tried =
      action.kind === "use" ? (this.#keys[action.key % Math.max(1, this.#keys.length)] ?? null) : null;
    for (let tries = 1; ; tries += 1) {
      const answer = await this.#send(action, tried);
      const isLost =
        [503, 409].includes(answer.status) && /RETRY|PROGRESS|UNAVAIL/.test(codeOf(answer) ?? "");
      if (action.kind === "create" && isLost && tries < TRIES_MAX) {
        await sleep(RETRY_MS);
        continue;
      }
      const given = answer.status < 400 ? carrying.parse(answer.body) : { apiKey: null };
      this.#learn(given);
      const isExpired = "keyDelivery" in given && given.keyDelivery === "expired";
      const key = action.kind === "use" ? tried : given.apiKey;
      const { status } = answer;
      return {
        action,
        status,
        code: codeOf(answer),
        key,
        isExpired,
        isRetried: tries > 1,
        from,
        to: Date.now(),
      };
    }
  }

  #learn({ agent, apiKey }: Partial<z.output<typeof carrying>>): void {
    if (apiKey !== null && apiKey !== undefined && !this.#keys.includes(apiKey)) this.#keys.push(apiKey);
    if (agent === undefined || this.#id !== "") return;
    this.#id = agent.id;
    this.#deliverableUntil = Date.parse(agent.key?.createdAt ?? "") + this.#windowMs;
  }

  #send(action: Action, tried: string | null) {
    const { api, token } = this.#world;
    const by = { person: token, machine: this.#machine.token, stranger: this.#stranger.token };
    const id = this.#id;
    switch (action.kind) {
      case "create":
        return api.call("createAgent", { token: by.machine, body: this.#create });
      case "use":
        return api.call("listPayments", { token: tried ?? "none" });
      case "mint":
        return api.call("mintAgentKey", { token, id });
      case "revoke":
        return api.call("revokeAgentKey", { token, id });
      case "pause":
        return api.call("pauseAgent", { token: by[action.by], id });
      case "resume":
        return api.call("resumeAgent", { token: by[action.by], id });
      case "archive":
        return api.call("archiveAgent", { token: by[action.by], id });
    }
  }

  /** Records, journal and keys are what one of the possible agents has. */
  async #expectEnd(): Promise<void> {
    const working: string[] = [];
    for (const apiKey of this.#keys) {
      const asked = () => this.#world.api.call("listPayments", { token: apiKey });
      const { status } = await onceReachable(asked);
      if (status !== 401) working.push(apiKey);
    }
    expect(working.length, "keys that work").to.be.at.most(1);
    await until(
      `journal, record and keys agree with\n${this.#transcript.join("\n")}`,
      async () => {
        const { fired, lifecycle } = await this.#recorded();
        const isThis = (agent: Agent): boolean => {
          const key = agent.key !== null && this.#keys.includes(agent.key) ? agent.key : undefined;
          const isFired = JSON.stringify(agent.fired) === JSON.stringify(fired);
          return isFired && agent.lifecycle === lifecycle && working[0] === key;
        };
        return this.#possible.some(isThis) ? true : null;
      },
      SETTLED_MS,
    );
  }

  /** The one agent of the machine's, and how often what fired for it; each event is there once for each change. */
  async #recorded(): Promise<Pick<Agent, "fired" | "lifecycle">> {
    const { db } = this.#world.service;
    const lineage = { createdByLineage: this.#machine.lineageId };
    const records = await db.collection<AgentDocument>(COLLECTIONS.agents).find(lineage).toArray();
    const [record] = records;
    expect(records.map(({ _id }) => _id)).to.deep.equal([this.#id]);
    if (record === undefined) throw new Error("there is no agent");
    const all = db.collection<EventDocument>(COLLECTIONS.events).find({ agentId: this.#id });
    const types = (await all.toArray()).map(({ type }) => type);
    const count = (type: string): number => types.filter((one) => one === `agent.${type}`).length;
    expect(count("created")).to.equal(1);
    const fired = { paused: count("paused"), resumed: count("resumed"), archived: count("archived") };
    return { fired, lifecycle: record.lifecycle };
  }
}

const line = ({ action, code, isExpired, isRetried, key, status }: Seen): string =>
  [
    Object.values(action).join(" "),
    `→ ${status}`,
    code ?? "",
    key === null ? "" : `…${key.slice(-4)}`,
    isExpired ? "expired" : "",
    isRetried ? "(again)" : "",
  ].join(" ");
