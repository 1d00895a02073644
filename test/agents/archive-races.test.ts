import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { TransactionDocument } from "../../src/store/documents.ts";
import { seed } from "../support/seed.ts";
import { message, rpc } from "../limits/support.ts";
import { type Answer, FOR_NOW, isForNow, onceReachable } from "../support/api.ts";
import { shortOrSoak } from "../support/soak.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { Random } from "../../lab/random.ts";
import { booksOnceAgreed } from "../support/books.ts";
import { codeOf } from "../support/contract-api.ts";
import {
  archive,
  expectDead,
  expectEvents,
  expiredAgents,
  keyOf,
  type MadeAgent,
  orchestrator,
  readAgent,
} from "../support/life.ts";
import { cardPayment, newWorld, type TestOrganizationKey, times, type World } from "../support/world.ts";

const ROUNDS = shortOrSoak(6, 60);

/** When the racers start at the latest. A machine's archive reads the balance first, so the agent waits longer. */
const USES_MS = 150;
const ARCHIVES_MS = 30;

/** Payments of one round, and when the last of them is sent at the latest. */
const PAYMENTS = 10;
const SPREAD_MS = 150;

const accepted = (world: World, id: string) =>
  world.service.db.collection<TransactionDocument>("transactions").countDocuments({ agentId: id });

// Who is told to come again, on a busy machine, does so; 200: what was answered 503 was made.
const outcomeOf = (answer: Answer) => codeOf(answer) ?? (answer.status === 200 ? 201 : answer.status);

describe(`archives that race (TEST_SEED=${seed})`, () => {
  const random = new Random(seed);
  const within = (ms: number) => sleep(random.between(0, ms));

  describe("an agent's first request against its machine archive", () => {
    let service: TestService;
    let world: World;
    let by: TestOrganizationKey;
    let agents: MadeAgent[];
    before(async () => {
      service = await startTestService({ keyDeliveryWindowSeconds: 8 });
      world = await newWorld(service);
      by = await orchestrator(world);
      agents = await expiredAgents(world, by, ROUNDS);
    });
    after(() => service.stop());

    const pay = async (key: string) => {
      const request = { token: key, body: cardPayment() };
      return outcomeOf(await onceReachable(() => world.api.call("createPayment", request)));
    };
    const payOverMcp = async (key: string) => {
      const { rail: _rail, ...args } = cardPayment();
      const calling = message("tools/call", { name: "create_card_payment", arguments: args });
      const { status, told } = await onceReachable(async () => {
        const answer = await rpc(service, key, calling);
        if (answer.status !== 200) return { status: answer.status, told: codeOf(answer) };
        const text = JSON.stringify(answer.body);
        if (!text.includes('"isError":true')) return { status: 200, told: 201 };
        return { status: FOR_NOW.some((code) => text.includes(String(code))) ? 503 : 200, told: text };
      });
      expect(status).to.be.oneOf([200, 401]);
      return told;
    };
    const read = async (key: string) => {
      return outcomeOf(await onceReachable(() => world.api.call("listPayments", { token: key })));
    };

    it(`${ROUNDS} rounds: exactly one of them wins, and only the winner leaves anything`, async () => {
      const wins = { agent: 0, archive: 0 };
      for (const [round, agent] of agents.entries()) {
        const use = [pay, payOverMcp, read][round % 3] ?? pay;
        const request = { token: by.token, id: agent.id };
        const [used, archived] = await Promise.all([
          within(USES_MS).then(() => use(keyOf(agent))),
          within(ARCHIVES_MS).then(() => onceReachable(() => world.api.call("archiveAgent", request))),
        ]);
        const outcome = [used, codeOf(archived) ?? archived.status];
        const what = `round ${round}: ${outcome.join(" and ")}`;
        const { state } = await readAgent(world, agent);
        if (archived.status === 200) {
          wins.archive += 1;
          expect([used, state], what).to.deep.equal(["UNAUTHORIZED", "archived"]);
          expect(await accepted(world, agent.id), what).to.equal(0);
          await expectDead(world, keyOf(agent));
          await expectEvents(world, agent, { "agent.created": 1, "agent.archived": 1 });
        } else {
          wins.agent += 1;
          expect([...outcome, state], what).to.deep.equal([201, "MACHINE_ARCHIVE_DENIED", "active"]);
          expect(await accepted(world, agent.id), what).to.equal(use === read ? 0 : 1);
          await world.api.ok("listPayments", 200, { token: keyOf(agent) });
        }
      }
      expect(wins.agent + wins.archive).to.equal(ROUNDS);
    });
  });

  describe("payments in flight against a person's archive", () => {
    it(`${ROUNDS} rounds: nothing is accepted after the archive's 200, and the books agree`, async () => {
      const world = await newWorld();
      for (const round of times(ROUNDS, (index) => index)) {
        // The route has a cap per minute and user.
        const own = round % 20 === 0 ? await newWorld() : world;
        const agent = await own.agent(round % 2 === 0 ? {} : { autoApprovalThresholdCents: 50 });
        let answeredAt = Infinity;
        const archiving = within(SPREAD_MS).then(async () => {
          const answer = await archive(own, agent);
          answeredAt = performance.now();
          return answer;
        });
        const paying = times(PAYMENTS, async () => {
          await within(SPREAD_MS);
          const sentAt = performance.now();
          const body = cardPayment();
          const answer = await own.api.call("createPayment", { token: agent.key, body });
          return { sentAt, isUnknown: isForNow(answer), outcome: codeOf(answer) ?? answer.status };
        });
        const [archived, ...paid] = await Promise.all([archiving, ...paying]);
        const there = await accepted(own, agent.id);
        // Of what a busy machine answers 503, it is unknown whether it was accepted.
        const told = paid.filter(({ isUnknown }) => !isUnknown);
        for (const { outcome, sentAt } of told) {
          expect(outcome).to.be.oneOf(sentAt > answeredAt ? ["UNAUTHORIZED"] : [201, "UNAUTHORIZED"]);
        }
        const made = told.filter(({ outcome }) => outcome === 201).length;
        expect(there).to.be.within(made, made + paid.length - told.length);
        const late = { token: agent.key, body: cardPayment() };
        const refused = await onceReachable(() => own.api.call("createPayment", late));
        expect(codeOf(refused)).to.equal("UNAUTHORIZED");
        expect(await accepted(own, agent.id)).to.equal(there);
        expect(archived.agent.state).to.equal("archived");
        const books = await booksOnceAgreed(own, agent);
        expect(books.reservedCents).to.equal(0);
      }
    });
  });
});
