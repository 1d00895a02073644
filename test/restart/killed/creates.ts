import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { AUDIT_LOG } from "../../../src/store/audit-documents.ts";
import { onceReachable } from "../../support/api.ts";
import { successOf, type Success } from "../../support/contract-api.ts";
import { type ServiceProcess, until } from "../../support/process.ts";
import type { LifePoint } from "../support/life-points.ts";
import { agentIn, type Creator, LifeStage } from "../support/life-stage.ts";
import { deliveryOf, expectOneAgent, reservedIds, teamOf } from "../support/one-agent.ts";

/** What an actor does by its timer, once a worker runs again. */
const CLOSED_MS = 120_000;
interface Create {
  readonly point: LifePoint;
  readonly creator: Creator;
  readonly body: Readonly<Record<string, unknown>>;
  /** The id that was reserved for it; null where it has no idempotency key. */
  readonly reserved: string | null;
}

type Created = Success<"createAgent"> & { readonly status: number };

/** One after the other: an armed point holds the first create. */
async function inTurn<T, R>(items: readonly T[], make: (item: T) => Promise<R>): Promise<R[]> {
  const made: R[] = [];
  for (const item of items) made.push(await make(item));
  return made;
}

/** Creates of agents, at hand when a service is killed. */
function creates() {
  let stage: LifeStage;

  async function on(service: ServiceProcess): Promise<void> {
    stage = await LifeStage.on(service);
  }

  /** Sends a create and holds it at the point. */
  async function dying(point: LifePoint, creator: Creator, isKeyed = true): Promise<Create> {
    const key = isKeyed ? { idempotencyKey: randomUUID() } : {};
    const body = { ...agentIn(creator), ...key };
    const before = await reservedIds(stage);
    await stage.hold(point, () => stage.api.call("createAgent", { token: creator.token, body }));
    const after = await reservedIds(stage);
    const reserved = after.find((id) => !before.includes(id)) ?? null;
    return { point, creator, body, reserved };
  }

  const byMachine = async (point: LifePoint) => dying(point, await stage.machine());
  const byPerson = async (point: LifePoint, isKeyed: boolean) => dying(point, await stage.person(), isKeyed);

  async function replay({ body, creator }: Create): Promise<Created> {
    const answer = await onceReachable(() => stage.api.call("createAgent", { token: creator.token, body }));
    expect(answer.status, JSON.stringify(answer.body)).to.be.oneOf([200, 201]);
    return { ...successOf("createAgent", answer.body), status: answer.status };
  }

  /** Whether the agent's own requests are accepted with it. */
  async function works(apiKey: string | null): Promise<boolean> {
    if (apiKey === null) return false;
    return (await stage.api.call("listPayments", { token: apiKey })).status === 200;
  }

  return { byMachine, byPerson, on, replay, works, stage: () => stage };
}

/** Each is replayed once the service is back. */
export function createsToReplay() {
  const { byMachine, byPerson, on, replay, works, stage: current } = creates();
  let stage: LifeStage;
  let machines: readonly Create[];
  let persons: readonly Create[];
  let unkeyed: readonly Create[];

  async function begin(service: ServiceProcess): Promise<void> {
    await on(service);
    stage = current();
    const steps = [
      "create-reserved",
      "create-placed",
      "create-actor-started",
      "create-key-file",
      "create-committed",
      "create-uncommitted",
    ] as const;
    machines = await inTurn(steps, byMachine);
    persons = await inTurn(["create-actor-started", "create-committed"] as const, (point) =>
      byPerson(point, true),
    );
    unkeyed = await inTurn(["create-committed"] as const, (point) => byPerson(point, false));
  }

  const tests = () =>
    describe("with a create that is replayed", () => {
      it("a machine's, at each step: one agent of the reserved id, one key that replays deliver", async () => {
        await Promise.all(
          machines.map(async (create) => {
            const { creator, point, reserved } = create;
            const first = await replay(create);
            expect([first.agent.id, first.status], point).to.deep.equal([
              reserved,
              point === "create-committed" ? 200 : 201,
            ]);
            const again = await replay(create);
            expect([again.agent.id, again.status], point).to.deep.equal([reserved, 200]);
            expect(again.apiKey, point).to.equal(first.apiKey);
            expect(await works(first.apiKey), point).to.equal(true);
            await expectOneAgent(stage, creator, first.agent.id);
            expect((await deliveryOf(stage, first.agent.id))?.state, point).to.equal("open");
            expect(await stage.hasDeliveryKey(first.agent.id), point).to.equal(true);
          }),
        );
      });

      it("a person's: one agent; its key is in the answer that carries it out, and in no other", async () => {
        for (const create of persons) {
          const isThere = create.point === "create-committed";
          const first = await replay(create);
          expect([first.agent.id, first.status]).to.deep.equal([create.reserved, isThere ? 200 : 201]);
          expect(await works(first.apiKey)).to.equal(!isThere);
          expect(await replay(create)).to.include({ status: 200, apiKey: null });
          await expectOneAgent(stage, create.creator, first.agent.id);
          expect(await stage.hasDeliveryKey(first.agent.id)).to.equal(false);
        }
      });

      it("each has one entry of its creation in the audit log, replayed or not", async () => {
        const [lost] = unkeyed;
        if (lost === undefined) throw new Error("there is one without a key");
        const [unreplayed] = (await teamOf(stage, lost.creator)).agents;
        const ids = [...machines, ...persons].map(({ reserved }) => reserved ?? "");
        for (const id of [...ids, unreplayed?._id ?? ""]) {
          const created = { action: "createAgent", "resource.id": id, "result.status": 201 };
          const entries = await stage.db.collection(AUDIT_LOG).find(created).toArray();
          expect(entries, id).to.have.length(1);
          expect(entries[0]?.["after"]).to.include({
            budgetCents: agentIn(lost.creator).budgetCents,
            version: 1,
          });
        }
      });

      it("a person's without a key, committed: one agent; a revoke and a mint replace its lost key", async () => {
        for (const { creator } of unkeyed) {
          const [found] = (await teamOf(stage, creator)).agents;
          const { _id: id } = await expectOneAgent(stage, creator, found?._id ?? "");
          await stage.elevate();
          const by = { token: creator.token, id };
          await stage.api.refused("mintAgentKey", 409, "KEY_ALREADY_EXISTS", by);
          await stage.api.ok("revokeAgentKey", 200, by);
          expect(await works((await stage.api.ok("mintAgentKey", 201, by)).apiKey)).to.equal(true);
        }
      });
    });

  return { begin, meet: () => stage.meet(), close: () => stage.close(), tests };
}

/** They are not replayed until the windows of their keys are over, which are short. */
export function createsToForget() {
  const { byMachine, byPerson, on, replay, works, stage: current } = creates();
  let stage: LifeStage;
  let begun: readonly Create[];
  let notBegun: readonly Create[];
  let byNobody: Create;
  let committed: Create;

  /** Its delivery key is looked for at once: its window is so short that it may be over before the last one is held. */
  async function sealed(point: LifePoint): Promise<Create> {
    const create = await byMachine(point);
    expect(await stage.deliveryKeys(), point).to.include(create.reserved);
    return create;
  }

  async function begin(service: ServiceProcess): Promise<void> {
    await on(service);
    stage = current();
    notBegun = await inTurn(["create-reserved", "create-placed"] as const, byMachine);
    const started = await byMachine("create-actor-started");
    const written = await sealed("create-key-file");
    byNobody = await byPerson("create-actor-started", false);
    committed = await sealed("create-committed");
    begun = [started, written, await sealed("create-uncommitted")];
  }

  const tests = () =>
    describe("with a create that is not replayed before the end of its window", () => {
      it("an uncommitted one is given up: actor ended, no record, delivery key destroyed", async () => {
        for (const { creator, reserved } of begun) {
          const id = reserved ?? "";
          await until(`the actor of ${id} ends`, CLOSED_MS, async () =>
            (await stage.actorOf(id)) === "COMPLETED" ? true : null,
          );
          expect((await deliveryOf(stage, id))?.state).to.equal("discarded");
          expect(await stage.deliveryKeys()).not.to.include(id);
          expect(await teamOf(stage, creator)).to.deep.include({ agents: [], created: [], committed: [] });
        }
        await until("the actor of the person's create ends", CLOSED_MS, async () => {
          const team = await teamOf(stage, byNobody.creator);
          return team.running.length === 0 ? expect(team.agents).to.deep.equal([]) : null;
        });
      });

      it("a committed one has its window closed: nothing sealed is left, its replay says expired", async () => {
        const id = committed.reserved ?? "";
        await until("the window is closed", CLOSED_MS, async () =>
          (await deliveryOf(stage, id))?.state === "closed" ? true : null,
        );
        expect((await deliveryOf(stage, id))?.sealed).to.equal(null);
        expect(await stage.deliveryKeys()).not.to.include(id);
        const expired = { status: 200, apiKey: null, keyDelivery: "expired" };
        expect(await replay(committed)).to.include(expired);
        await expectOneAgent(stage, committed.creator, id);
      });

      it("a replay of one given up makes one agent under another id, counted once for the day", async () => {
        await Promise.all(
          begun.map(async (create) => {
            const made = await replay(create);
            expect(made.status).to.equal(201);
            expect(made.agent.id).not.to.equal(create.reserved);
            expect(await works(made.apiKey)).to.equal(true);
            await expectOneAgent(stage, create.creator, made.agent.id);
          }),
        );
      });

      it("a replay of one without an actor makes one agent under another id, whose key is delivered", async () => {
        await Promise.all(
          notBegun.map(async (create) => {
            const made = await replay(create);
            expect(made.status).to.equal(201);
            expect(made.agent.id).not.to.equal(create.reserved);
            expect(await works(made.apiKey)).to.equal(true);
            await expectOneAgent(stage, create.creator, made.agent.id);
          }),
        );
      });
    });

  return { begin, meet: () => stage.meet(), close: () => stage.close(), tests };
}
