import { expect } from "chai";
import {
  createPaymentActivities,
  type PaymentActivityDependencies,
} from "../../activities/payment-activities.ts";
import { capturedInFull } from "../../src/domain/ledger/books.ts";
import type { LedgerReply } from "../../src/domain/ledger/commands.ts";
import { type Payment, type Rail, withTexts } from "../../src/domain/ledger/payment.ts";
import { Bookings } from "../../src/payments/bookings.ts";
import { createPaymentEffects, type PaymentEffectDependencies } from "../../src/payments/effects.ts";
import type {
  ChangedPayment,
  ChangeFeed,
  ConfirmedLedgers,
  PaymentWorkflows,
  RailNetwork,
  Rails,
} from "../../src/payments/ports.ts";
import { eventually } from "../chain/support.ts";
import { NOON, MINUTE, profile } from "./support/actor.ts";
import { TestAccount } from "./support/account.ts";

const changedAt = (minutes: number): Date => new Date(NOON + minutes * MINUTE);

const unasked = (): Promise<never> => Promise.reject(new Error("nothing is to be booked"));

/** A network with changes, that has done nothing with its payments, and keeps those that could not be booked. */
class KeptNetwork implements RailNetwork {
  readonly kept = new Set<string>();
  readonly #changes: readonly ChangedPayment[];

  constructor(changes: readonly ChangedPayment[]) {
    this.#changes = changes;
  }

  booksOf: RailNetwork["booksOf"] = () => Promise.resolve([]);

  async *changedSince(since: Date): AsyncIterable<ChangedPayment> {
    yield* this.#changes.filter(({ changedAt: at }) => at >= since);
  }

  feeds: RailNetwork["feeds"] = async function* (this: KeptNetwork) {
    yield this.#again();
  };

  keepUnbooked: RailNetwork["keepUnbooked"] = (transactionId) => {
    this.kept.add(transactionId);
    return Promise.resolve();
  };

  async *#again(): ChangeFeed {
    const before = [...this.kept];
    this.kept.clear();
    yield before;
  }
}

const broken = async function* () {
  await Promise.resolve();
  yield ["txn_of_broken"];
  throw new Error("the issuer is gone");
};

const withCards = (network: RailNetwork): Rails =>
  ({ card: { network }, wallet: { network: null } }) as Partial<Rails> as Rails;

/** A worker that books networks in which every payment but `txn_unrecorded` has a record. */
const watching = (
  networks: Readonly<Record<Rail, RailNetwork | null>>,
  onSweepFailed: (id: string) => void = () => undefined,
) =>
  ({
    rails: { card: { network: networks.card }, wallet: { network: networks.wallet } },
    clock: () => changedAt(0),
    projections: {
      paymentOf: (id: string) =>
        Promise.resolve(id === "txn_unrecorded" ? null : { profile, payment: new TestAccount().paid(100) }),
    },
    onSweepFailed,
  }) as unknown as PaymentActivityDependencies;

describe("the watch over a network", () => {
  it("keeps a payment that can't be booked, which holds no other back, until it is booked", async () => {
    const { request } = new TestAccount().paid(100);
    const changes: readonly ChangedPayment[] = [
      { transactionId: request.transactionId, changedAt: changedAt(1) },
      { transactionId: "txn_unrecorded", changedAt: changedAt(2) },
      { transactionId: request.transactionId, changedAt: changedAt(60) },
    ];
    const network = new KeptNetwork(changes);
    const recorded = new Set([request.transactionId]);
    const ledgers: ConfirmedLedgers = { submit: unasked, confirmLater: () => undefined };
    const payment = new TestAccount().paid(100);
    const failed: string[] = [];
    const bookings = new Bookings({
      clock: () => changedAt(0),
      effects: { recordAndPublish: unasked },
      ledgers,
      projections: {
        closedAgent: unasked,
        paymentOf: (id) => Promise.resolve(recorded.has(id) ? { profile, payment } : null),
      },
      rails: withCards(network),
    });
    const read = (since: Date) => bookings.bookSince("card", since, (id) => failed.push(id));
    expect(await read(changedAt(0))).to.deep.equal(changedAt(60));
    expect(failed).to.deep.equal(["txn_unrecorded"]);
    await read(changedAt(61));
    expect(failed, "tried again").to.deep.equal(["txn_unrecorded", "txn_unrecorded"]);
    expect([...network.kept]).to.deep.equal(["txn_unrecorded"]);
    recorded.add("txn_unrecorded");
    await read(changedAt(61));
    expect([[...network.kept], failed.length]).to.deep.equal([[], 2]);
  });

  it("stays where it is if a payment can be neither booked nor kept", async () => {
    const network = new KeptNetwork([{ transactionId: "txn_unrecorded", changedAt: changedAt(1) }]);
    network.keepUnbooked = () => Promise.reject(new Error("the records are out of reach"));
    const { bookNetworks } = createPaymentActivities(watching({ card: network, wallet: null }));
    expect(await bookNetworks({ since: { card: NOON, wallet: NOON } })).to.include({ card: NOON });
  });

  it("reads feeds side by side: one that never answers, or fails, holds no other back", async () => {
    const booked: string[] = [];
    const feedOf = async function* (id: string, isStuck = false) {
      if (isStuck) await new Promise(() => undefined);
      yield [id];
      booked.push(id);
    };
    const network = new KeptNetwork([]);
    network.feeds = async function* () {
      yield* [feedOf("txn_stuck", true), broken(), feedOf("txn_1"), feedOf("txn_2")];
    };
    const failed: string[] = [];
    const dependencies = watching({ card: network, wallet: null }, (id) => failed.push(id));
    void createPaymentActivities(dependencies).bookNetworks({ since: { card: NOON, wallet: NOON } });
    await eventually("both others are read", () => Promise.resolve(booked.length === 2));
    expect(failed).to.include("card");
  });

  it("keeps a time for each rail", async () => {
    const networkOf = (minutes: number) =>
      new KeptNetwork([{ transactionId: "txn_1", changedAt: changedAt(minutes) }]);
    const { bookNetworks } = createPaymentActivities(watching({ card: networkOf(5), wallet: networkOf(60) }));
    const booked = await bookNetworks({ since: { card: NOON, wallet: NOON } });
    expect(booked).to.deep.equal({ card: changedAt(5).getTime(), wallet: changedAt(60).getTime() });
  });

  it("ends the approval's workflow where the process that executed the payment has died", async () => {
    const account = new TestAccount({ autoApprovalThresholdCents: 0 });
    const { request } = account.pay(100);
    const { transactionId } = request;
    const { payment } = account.resolve("approve", transactionId);
    const network = new KeptNetwork([{ transactionId, changedAt: changedAt(1) }]);
    network.booksOf = () => Promise.resolve([{ ...capturedInFull(request.amountMc), creditedMc: 1_000 }]);
    const rails = withCards(network);
    const ended: string[] = [];
    const ledgers: ConfirmedLedgers = {
      submit: (_project, command) => Promise.resolve(whole(account.judge(command), payment)),
      confirmLater: (_project, confirmation) => void account.judge(confirmation),
    };
    const projections = {
      paymentOf: () => Promise.resolve({ profile, payment }),
      writePayment: () => Promise.resolve(),
    };
    const workflows: Pick<PaymentWorkflows, "endApproval"> = {
      endApproval: (_profile, { request: { transactionId: id } }) => Promise.resolve(void ended.push(id)),
    };
    const dependencies = {
      clock: () => changedAt(0),
      ledgers,
      projections,
      rails,
      workflows,
      publisher: { publish: () => Promise.resolve() },
      proofs: { isAccepted: () => true, isResolvedAsNamed: () => true },
    } as unknown as PaymentEffectDependencies;
    const bookings = new Bookings({ ...dependencies, ledgers, effects: createPaymentEffects(dependencies) });
    await bookings.book(transactionId);
    expect(account.isOpen(transactionId), "still open").to.equal(false);
    expect(ended).to.deep.equal([transactionId]);
  });
});

/** A ledger's reply with the texts of its payment. */
const whole = (reply: LedgerReply, texts: Payment): LedgerReply<Payment> =>
  "payment" in reply && reply.payment !== null
    ? { ...reply, payment: withTexts(reply.payment, texts.request) }
    : (reply as LedgerReply<Payment>);
