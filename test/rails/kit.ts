import { expect } from "chai";
import { keccak256, toBytes } from "viem";
import { capturedInFull, joined, type RailBooks } from "../../src/domain/ledger/books.ts";
import type { Payment, Rail } from "../../src/domain/ledger/payment.ts";
import type { AgentProfile } from "../../src/domain/agent/state.ts";
import { mcOf, usedCents } from "../../src/domain/money.ts";
import type { RailPort, SendOutcome } from "../../src/payments/ports.ts";
import type { PaymentEntry } from "../../src/rails/findings.ts";
import type { RailSources } from "../../src/rails/folder.ts";
import { RAIL_FOLDERS } from "../../src/rails/rails.ts";
import { eventually } from "../chain/support.ts";
import { TEST_ACCESS_PROOFS } from "../support/access-proofs.ts";
import { seed } from "../support/seed.ts";
import { shortOrSoak } from "../support/soak.ts";
import { Steps } from "./steps.ts";

/** A process that has a rail, and takes every step through `Steps`. */
export interface SteppedProcess {
  readonly rail: RailPort;
  close(): Promise<void>;
}

/** A rail with its books, and an agent that can pay on it. */
export interface RailScene {
  /** Another process, which nothing stops. */
  readonly rail: RailPort;
  readonly profile: AgentProfile;
  /** A new payment of the agent that the rail settles in full. */
  payment(): Payment;
  stepped(steps: Steps): Promise<SteppedProcess>;
  /** Returns the number of times that a payment was made, by the rail's own books. */
  timesMade(payment: Payment): Promise<number>;
  /** Sources of the rail's reconciliation. */
  readonly sources: Pick<RailSources, "chainRpcUrl" | "collections" | "db" | "env" | "pocketKeys">;
  /** Effects of the rail's network on a settled payment, in order; each may be repeated. */
  readonly effects: readonly ((payment: Payment) => Promise<void>)[];
  /** `settle` also sends what was not sent yet, under the permission that it requests. */
  readonly settleSends?: true;
  /** A sender is stopped before each so-many-th step; 1 where it is left out. */
  readonly every?: number;
  close(): Promise<void>;
}

const [BEFORE, FENCE, AFTER] = [5, 6, 7];
/** A process takes fewer steps than this to send a payment. */
const STEPS_MAX = 200;

/** A payment's record as the service writes it once the rail has settled it. */
const entryOf = ({ request }: Payment, { agentId }: AgentProfile, sent: SendOutcome): PaymentEntry => ({
  id: request.transactionId,
  agentId,
  rail: request.rail,
  to: request.recipient,
  amountCents: usedCents(request.amountMc),
  authorizations: [capturedInFull(request.amountMc)],
  status: "approved",
  isOnCard: false,
  hash: sent.status === "settled" ? (sent.onChain?.txHash ?? null) : null,
});

const unfit = (status: SendOutcome["status"]) => (outcome: SendOutcome) => outcome.status !== status;

/** The suite that every rail passes; each calls it in its own `kit.test.ts`, once for each way in which it pays. */
export function railKit(name: Rail, open: () => Promise<RailScene>, by = `the ${name} rail`): void {
  describe(by, function () {
    this.timeout(300_000);
    let scene: RailScene;
    before(async () => {
      scene = await open();
    });
    after(() => scene.close());

    const fence = ({ request: { transactionId } }: Payment, at = FENCE) =>
      scene.rail.fence([{ transactionId, fence: at }]);
    /** The end of what was sent: a rail that is final only later may not know it at once. */
    async function ended(payment: Payment, sent: SendOutcome): Promise<SendOutcome> {
      if (sent.status !== "pending") return sent;
      expect(scene.rail.capabilities.finality).to.equal("eventual");
      await eventually("it has ended", async () => (await query(payment))?.status !== "pending");
      return (await query(payment)) ?? sent;
    }
    const send = async (payment: Payment, permit: number) =>
      ended(payment, await scene.rail.send(scene.profile, payment, permit));
    const withhold = (payment: Payment) => scene.rail.withhold(scene.profile, payment);

    const query = (payment: Payment) => scene.rail.query(payment);

    /** A payment of a process that is stopped before its n-th step while `stop` goes on; null: it has fewer steps. */
    async function stoppedAt(
      step: number,
      stop: (payment: Payment) => Promise<unknown>,
    ): Promise<{
      readonly payment: Payment;
      readonly isMade: boolean;
      readonly outcome: SendOutcome;
    } | null> {
      const steps = new Steps(step);
      const process = await scene.stepped(steps);
      const payment = scene.payment();
      const sending = process.rail.send(scene.profile, payment, BEFORE);
      const isStopped = await Promise.race([steps.stopped.then(() => true), sending.then(() => false)]);
      if (isStopped) await stop(payment);
      const isMade = (await scene.timesMade(payment)) > 0;
      steps.goOn();
      const outcome = await ended(payment, await sending);
      await process.close();
      return isStopped ? { payment, isMade, outcome } : null;
    }

    /** Repeats it for each step, or for each of the scene's choice. */
    async function stoppedAtEach(
      stop: (payment: Payment) => Promise<unknown>,
      check: (stopped: NonNullable<Awaited<ReturnType<typeof stoppedAt>>>, what: string) => Promise<void>,
      { isMadeByOthers = false } = {},
    ): Promise<void> {
      const { every = 1 } = scene;
      let [fenced, made] = [0, 0];
      for (let step = 1 + (seed % every); ; step += every) {
        expect(step).to.be.below(STEPS_MAX);
        const stopped = await stoppedAt(step, stop);
        if (stopped === null) break;
        await check(stopped, `stopped before step ${String(step)}`);
        if (stopped.isMade) made += 1;
        else fenced += 1;
      }
      const both = [fenced > 0 || isMadeByOthers, made > 0];
      expect(both, "it was stopped before and after its payment was made").to.deep.equal([true, true]);
    }

    it("a process stopped between any two steps makes no payment after the stop's answer", () =>
      stoppedAtEach(fence, async ({ isMade, outcome, payment }, what) => {
        expect(await scene.timesMade(payment), what).to.equal(isMade ? 1 : 0);
        expect(outcome.status === "fenced", what).to.equal(!isMade);
        expect((await query(payment)) === null, what).to.equal(!isMade);
        // Resumed: once, whichever process sends it.
        const sent = await Promise.all([send(payment, AFTER), send(payment, AFTER)]);
        expect(
          sent.map(({ status }) => status),
          what,
        ).to.deep.equal(["settled", "settled"]);
        expect(await scene.timesMade(payment), what).to.equal(1);
      }));

    it("a payment that is withdrawn after its fence is never made, by whatever permit", () =>
      stoppedAtEach(
        async (payment) => {
          await fence(payment);
          await withhold(payment);
        },
        async ({ isMade, payment }, what) => {
          const status = isMade ? "settled" : "withheld";
          expect((await send(payment, AFTER)).status, what).to.equal(status);
          await fence(payment, AFTER + 1);
          expect((await withhold(payment)).status, what).to.equal(status);
          expect(await scene.timesMade(payment), what).to.equal(isMade ? 1 : 0);
        },
      ));

    it("killed between any two steps, or its answer lost: sent again by another, it is made once", () =>
      stoppedAtEach(
        async (payment) => {
          // The stopped process counts as dead; it is let go only when all is over.
          const sent = await Promise.all([send(payment, BEFORE), send(payment, BEFORE)]);
          expect(sent.map(({ status }) => status)).to.deep.equal(["settled", "settled"]);
          expect((await query(payment))?.status).to.equal("settled");
        },
        async ({ outcome, payment }, what) => {
          expect(outcome.status, what).to.equal("settled");
          expect(await scene.timesMade(payment), what).to.equal(1);
        },
        { isMadeByOthers: true },
      ));

    it("questions and waits before it is sent make nothing, and after it they change nothing", async () => {
      const payment = scene.payment();
      const settle = () =>
        scene.rail.settle(scene.profile, payment, 0, () => Promise.resolve({ kind: "send", permit: AFTER }));
      expect(await query(payment)).to.equal(null);
      if (scene.settleSends !== true) expect(await settle()).to.equal(null);
      expect(await scene.timesMade(payment)).to.equal(0);
      const sent = await send(payment, BEFORE);
      for (const again of [await query(payment), await settle(), await send(payment, BEFORE)])
        expect(again).to.deep.equal(sent);
      expect(await withhold(payment)).to.deep.equal(sent);
      expect(await scene.timesMade(payment)).to.equal(1);
    });

    it("withdrawn before it is sent, beside it, or after it: one end, the same for all", async () => {
      const before = scene.payment();
      expect((await withhold(before)).status).to.equal("withheld");
      expect((await send(before, AFTER)).status).to.equal("withheld");
      const beside = scene.payment();
      const withheld = withhold(beside).then((end) => ended(beside, end));
      // One that meets the fence of a withdrawal asks again, as every sender does.
      async function sent(): Promise<SendOutcome> {
        const outcome = await send(beside, BEFORE);
        return outcome.status === "fenced" ? sent() : outcome;
      }
      const ends = await Promise.all([sent(), withheld, sent()]);
      expect(new Set(ends.map(({ status }) => status)).size).to.equal(1);
      expect((await query(beside))?.status).to.equal(ends[0].status);
      expect(await scene.timesMade(beside)).to.equal(ends[0].status === "settled" ? 1 : 0);
      expect(await scene.timesMade(before)).to.equal(0);
    });

    it("its network's books, read in any order, twice or not at all, join to the newest", async () => {
      const payment = scene.payment();
      const { network } = scene.rail;
      expect((await send(payment, BEFORE)).status).to.equal("settled");
      const reads: RailBooks[] = [capturedInFull(payment.request.amountMc)];
      for (const play of scene.effects) {
        await play(payment);
        await play(payment);
        const read = await network?.booksOf(payment.request.transactionId);
        reads.push(...(read ?? []).slice(-1));
      }
      expect(reads).to.have.lengthOf(1 + scene.effects.length);
      const newest = reads.at(-1) ?? capturedInFull(0);
      for (const one of reads)
        for (const other of reads)
          for (const order of [
            [newest, one, other],
            [one, newest, other],
            [one, other, newest],
          ])
            expect(order.reduce(joined)).to.deep.equal(newest);
    });

    it("its reconciliation agrees with what was made, and names every planted difference", async () => {
      const { reconciliations } = RAIL_FOLDERS[name];
      const { organizationId } = scene.profile;
      const [made, unmade] = [scene.payment(), scene.payment()];
      const sent = await send(made, BEFORE);
      await scene.timesMade(made);
      const entry = entryOf(made, scene.profile, sent);
      const { transactionId: id } = made.request;
      const differing = async (payments: readonly PaymentEntry[]) => {
        const paymentIds = new Set([id, ...payments.map((payment) => payment.id)]);
        const sources = {
          ...scene.sources,
          accessProofs: TEST_ACCESS_PROOFS,
          cardConnections: null,
          organizationId,
          payments,
          paymentIds,
        };
        const found = [];
        for (const reconciliation of reconciliations) {
          const own = await reconciliation.findings(sources);
          if (typeof own === "string") throw new Error(own);
          found.push(...own);
        }
        // Other payments of the scene have no entries here.
        const own = new Set([...paymentIds, keccak256(toBytes(id))]);
        return found.filter((finding) => own.has(finding.id)).length;
      };
      expect(await differing([entry]), "as it was made").to.equal(0);
      const cents = entry.amountCents + 1;
      const planted: Readonly<Record<string, readonly PaymentEntry[]>> = {
        "a record that was lost": [],
        "another amount": [{ ...entry, amountCents: cents, authorizations: [capturedInFull(mcOf(cents))] }],
        "another recipient": [{ ...entry, to: "another" }],
        "called failed": [{ ...entry, status: "failed", hash: null, authorizations: [] }],
        "called paid": [entry, entryOf(unmade, scene.profile, sent)],
      };
      for (const [what, payments] of Object.entries(planted))
        expect(await differing(payments), what).to.be.above(0);
    });

    it("a fence that comes late, or again, is never lowered and undoes nothing", async () => {
      const payment = scene.payment();
      await Promise.all([fence(payment, 9), fence(payment, 3), fence(payment, 9), fence(payment, 1)]);
      expect((await send(payment, 8)).status).to.equal("fenced");
      expect(await query(payment)).to.equal(null);
      expect((await send(payment, 9)).status).to.equal("settled");
      await fence(payment, 10);
      expect((await query(payment))?.status).to.equal("settled");
      expect(await scene.timesMade(payment)).to.equal(1);
    });

    it("many payments are fenced in one call, and beside them others are made", async () => {
      const half = shortOrSoak(5, 20);
      const payments = Array.from({ length: 2 * half }, () => scene.payment());
      const [stopped, others] = [payments.slice(0, half), payments.slice(half)];
      await scene.rail.fence(
        stopped.map(({ request: { transactionId } }) => ({ transactionId, fence: FENCE })),
      );
      const sent = await Promise.all(payments.map((payment) => send(payment, BEFORE)));
      expect(sent.slice(0, half).filter(unfit("fenced"))).to.deep.equal([]);
      expect(sent.slice(half).filter(unfit("settled"))).to.deep.equal([]);
      const made = await Promise.all(others.map((payment) => scene.timesMade(payment)));
      expect(made.filter((times) => times !== 1)).to.deep.equal([]);
    });
  });
}
