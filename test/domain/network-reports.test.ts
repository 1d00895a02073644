import { expect } from "chai";
import {
  createPaymentActivities,
  type PaymentActivityDependencies,
} from "../../activities/payment-activities.ts";
import { capturedInFull } from "../../src/domain/ledger/books.ts";
import type { LedgerReply } from "../../src/domain/ledger/commands.ts";
import { type Payment, withTexts } from "../../src/domain/ledger/payment.ts";
import { Bookings } from "../../src/payments/bookings.ts";
import { createPaymentEffects, type PaymentEffectDependencies } from "../../src/payments/effects.ts";
import type {
  ChangedPayment,
  ConfirmedLedgers,
  PaymentWorkflows,
  RailNetwork,
  Rails,
} from "../../src/payments/ports.ts";
import { NOON, MINUTE, profile } from "./support/actor.ts";
import { TestAccount } from "./support/account.ts";

const changedAt = (minutes: number): Date => new Date(NOON + minutes * MINUTE);

const unasked = (): Promise<never> => Promise.reject(new Error("nothing is to be booked"));

describe("the watch over a network", () => {
  it("reads again what it found before its payment was recorded", async () => {
    const { request } = new TestAccount().paid(100);
    const changes: readonly ChangedPayment[] = [
      { transactionId: request.transactionId, changedAt: changedAt(1) },
      { transactionId: "txn_unrecorded", changedAt: changedAt(2) },
      { transactionId: request.transactionId, changedAt: changedAt(60) },
    ];
    const network: RailNetwork = {
      booksOf: () => Promise.resolve([]),
      async *changedSince() {
        yield* changes;
      },
    };
    const ledgers: ConfirmedLedgers = { submit: unasked, confirmLater: () => undefined };
    const payment = new TestAccount().paid(100);
    const failed: string[] = [];
    const bookings = new Bookings({
      clock: () => changedAt(0),
      effects: { recordAndPublish: unasked },
      ledgers,
      projections: {
        closedAgent: unasked,
        paymentOf: (id) => Promise.resolve(id === request.transactionId ? { profile, payment } : null),
      },
      rails: { card: { network }, wallet: { network: null } } as Partial<Rails> as Rails,
    });
    const readThrough = await bookings.bookSince("card", changedAt(0), (id) => failed.push(id));
    expect(readThrough).to.deep.equal(changedAt(1));
    expect(failed).to.deep.equal(["txn_unrecorded"]);
  });

  it("keeps a time for each rail: one that can't be booked holds no other back", async () => {
    const { request } = new TestAccount().paid(100);
    const payment = new TestAccount().paid(100);
    const networkOf = (transactionId: string): RailNetwork => ({
      booksOf: () => Promise.resolve([]),
      async *changedSince() {
        yield { transactionId, changedAt: changedAt(60) };
      },
    });
    const dependencies = {
      rails: {
        card: { network: networkOf("txn_unrecorded") },
        wallet: { network: networkOf(request.transactionId) },
      },
      clock: () => changedAt(0),
      projections: {
        paymentOf: (id: string) =>
          Promise.resolve(id === request.transactionId ? { profile, payment } : null),
      },
      onSweepFailed: () => undefined,
    } as unknown as PaymentActivityDependencies;
    const { bookNetworks } = createPaymentActivities(dependencies);
    const since = { card: NOON, wallet: NOON };
    expect(await bookNetworks({ since })).to.deep.equal({ card: NOON, wallet: changedAt(60).getTime() });
  });

  it("ends the approval's workflow where the process that executed the payment has died", async () => {
    const account = new TestAccount({ autoApprovalThresholdCents: 0 });
    const { request } = account.pay(100);
    const { transactionId } = request;
    const { payment } = account.resolve("approve", transactionId);
    const network: RailNetwork = {
      booksOf: () => Promise.resolve([{ ...capturedInFull(request.amountMc), creditedMc: 1_000 }]),
      async *changedSince() {
        yield { transactionId, changedAt: changedAt(1) };
      },
    };
    const rails = { card: { network }, wallet: { network: null } } as Partial<Rails> as Rails;
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
