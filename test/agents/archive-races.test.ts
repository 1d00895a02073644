import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { TransactionDocument } from "../../src/store/documents.ts";
import { seed } from "../support/seed.ts";
import { isForNow, onceReachable } from "../support/api.ts";
import { shortOrSoak } from "../support/soak.ts";
import { Random } from "../../lab/random.ts";
import { booksOnceAgreed } from "../support/books.ts";
import { codeOf } from "../support/contract-api.ts";
import { archive } from "../support/life.ts";
import { cardPayment, newWorld, times, type World } from "../support/world.ts";

const ROUNDS = shortOrSoak(3, 60);

/** Payments of one round, and when the last of them is sent at the latest. */
const PAYMENTS = 10;
const SPREAD_MS = 150;

const accepted = (world: World, id: string) =>
  world.service.db.collection<TransactionDocument>("transactions").countDocuments({ agentId: id });

describe(`archives that race (TEST_SEED=${seed})`, () => {
  const random = new Random(seed);
  const within = (ms: number) => sleep(random.between(0, ms));

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
