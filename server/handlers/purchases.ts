import type { z } from "zod";
import type { purchase } from "../../src/contract/purchases.ts";
import { WALLET_RAIL } from "../../src/domain/ledger/payment.ts";
import { type Refusal, refusal } from "../../src/domain/errors.ts";
import { MAX_MC, mcOf, usedCents } from "../../src/domain/money.ts";
import { ok, refused } from "../../src/domain/result.ts";
import type { AgentPrincipal } from "../../src/identity/principals.ts";
import type { Deadline } from "../../src/lib/deadline.ts";
import { newId, payloadHash, shortHash } from "../../src/lib/ids.ts";
import { KeyedMutex } from "../../src/lib/keyed-mutex.ts";
import { keyReused } from "../../src/payments/payment-orders.ts";
import type { MadePayment, RecordedPayment } from "../../src/payments/payments.ts";
import { answerIn } from "../../src/rails/challenge/answers.ts";
import type { ShopAnswer } from "../../src/rails/challenge/orders.ts";
import type { Offer } from "../../src/rails/challenge/protocols/offer.ts";
import type { Hand } from "../../src/rails/challenge/rail.ts";
import type { ShopRequest } from "../../src/rails/challenge/shops.ts";
import { profileOf } from "../../src/store/documents.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import { ownPayments, payerOf, paymentViewAt, repeatedRefusal } from "./payments.ts";
import { shopVisits } from "./shop-visits.ts";
import type { Handlers } from "./types.ts";

type PurchaseHandlers = Pick<Handlers, "payX402Request">;

type Asked = z.output<typeof purchase>;

/** Time for two exchanges with a shop and their turns, funding of the pocket in between, and a final block. */
const PURCHASE_MS = 35_000;
/** Time to wait for a final block when a purchase is resumed. */
const GO_ON_MS = 1_000;

const NOT_DELIVERED: ShopAnswer = {
  httpStatus: 402,
  headers: {},
  body: null,
  bodyEncoding: "utf8",
  isCut: false,
};

interface Call {
  readonly principal: AgentPrincipal;
  readonly asked: Asked;
  readonly deadline: Deadline;
  readonly waitSeconds: number;
}

/** Agents' purchases from shops that request payment with HTTP 402. */
export function purchaseHandlers(dependencies: HandlerDependencies): PurchaseHandlers {
  const { baseUrl, payments, purchases } = dependencies;
  const { waitedFor } = ownPayments(dependencies);
  const visit = shopVisits(dependencies);
  const paymentView = paymentViewAt(baseUrl);
  /** A repeated call waits for the earlier one and gets its result. */
  const turns = new KeyedMutex(PURCHASE_MS);

  async function buy(cachedCall: Call) {
    const { asked, principal } = cachedCall;
    const earlierPayment = payments.earlier(principal.agent._id, asked.idempotencyKey);
    // A new purchase that would find no turn costs no more than this look-up.
    if (visit.isBusy(principal.agent) && (await earlierPayment) === null)
      return refused(visit.busy(principal.agent));
    const request = requestOf(asked);
    const hash = payloadHash({ ...request, maxAmountCents: asked.maxAmountCents, purpose: asked.purpose });
    // No shop is asked, and no goods are given again, for a key that has been revoked since it was cached.
    const [verified, earlier] = await Promise.all([
      principal.cached?.verify() ?? ok(principal),
      earlierPayment,
    ]);
    if (!verified.ok) return verified;
    const call = { ...cachedCall, principal: verified.value };
    const { agent } = call.principal;
    if (earlier === null) return visited(call, request, hash, null);
    if (earlier.transaction.payloadHash !== hash) return refused(keyReused(earlier.transaction._id));
    const known = await waitedFor(agent, earlier, heldOnly(earlier, call));
    const isSigned = purchases !== null && (await purchases.isSigned(known.transaction._id));
    if (isToBeMade(known) && !isSigned) return visited(call, request, hash, known);
    const { _id, status } = known.transaction;
    const isOpen = status === "pending" && isSigned;
    const now = isOpen ? await payments.goOn(profileOf(agent), _id, GO_ON_MS) : known;
    return answered(await payments.repeated(now), null);
  }

  /** Fetches the URL unpaid, and pays if the shop requests it. `earlier`: payment made under this idempotency key. */
  async function visited(call: Call, request: ShopRequest, hash: string, earlier: RecordedPayment | null) {
    const { asked, deadline, principal } = call;
    deadline.moveTo(deadline.elapsedMs + PURCHASE_MS);
    const fetched = await visit.unpaid(principal.agent, request);
    if (!fetched.ok) return fetched;
    if (fetched.value.httpStatus !== 402) return free(answerIn(fetched.value), earlier);
    // The rail compares a decided payment with its offer, whatever the offer costs now.
    const maxMc = earlier === null ? mcOf(asked.maxAmountCents) : MAX_MC;
    const offer = await visit.offer(principal.agent, request, fetched.value, maxMc);
    return offer.ok ? paidFor(call, { request, hash, offer: offer.value }, earlier) : offer;
  }

  async function paidFor(
    call: Call,
    { hash, offer, request }: { readonly request: ShopRequest; readonly hash: string; readonly offer: Offer },
    earlier: RecordedPayment | null,
  ) {
    const { asked, deadline, principal } = call;
    if (purchases === null) return refused(refusal("NO_PAYABLE_OFFER"));
    const { agent } = principal;
    const { idempotencyKey, purpose } = asked;
    const transactionId = newId("txn");
    const newTransactionId = earlier === null ? transactionId : null;
    const hand: Hand = { request, offer, newTransactionId, answer: null, closing: Promise.resolve() };
    return purchases.withHand(agent._id, shortHash(idempotencyKey), hand, async () => {
      if (earlier !== null) {
        const now = await payments.goOn(profileOf(agent), earlier.transaction._id, GO_ON_MS);
        return answered(await payments.repeated(now), hand);
      }
      const order = {
        rail: WALLET_RAIL,
        recipient: offer.payTo,
        amountCents: usedCents(offer.amountMc),
        currency: "USD",
        purpose,
        idempotencyKey,
        purchase: {
          protocol: offer.frame.protocol,
          resource: new URL(request.url).href,
          amountMc: offer.amountMc,
          payloadHash: hash,
          transactionId,
        },
      } as const;
      const paid = await payments.pay(payerOf(principal), order, deadline);
      if (!paid.ok) return paid;
      const known = await waitedFor(agent, paid.value, heldOnly(paid.value, call));
      deadline.moveTo(deadline.elapsedMs + PURCHASE_MS);
      const isApproved = isToBeMade(known) && (known.approval !== null || paid.value.replayed);
      const made = isApproved
        ? await payments.goOn(profileOf(agent), known.transaction._id, GO_ON_MS)
        : known;
      return answered({ ...paid.value, ...made }, hand);
    });
  }

  /** Omits the card: purchases are paid from wallets. */
  function purchaseView(made: RecordedPayment) {
    const { card: _none, ...shown } = paymentView(made);
    return shown;
  }

  /** Returns a shop's response that needed no payment. Nothing is decided. */
  function free(answer: ShopAnswer, earlier: RecordedPayment | null) {
    const none = { transaction: null, approval: null, approvalUrl: null, raise: null };
    const shown = earlier === null ? none : purchaseView(earlier);
    const body = { ...answerView(answer), ...shown, replayed: earlier !== null, possibleDuplicateOf: null };
    return ok(earlier === null ? { body } : { status: 200 as const, body });
  }

  async function answered(made: MadePayment, hand: Hand | null) {
    const { possibleDuplicateOf, replayed, transaction } = made;
    await hand?.closing;
    const kept = hand?.answer ?? (await purchases?.answerOf(transaction._id)) ?? NOT_DELIVERED;
    const body = { ...answerView(kept), ...purchaseView(made), replayed, possibleDuplicateOf };
    return ok(replayed ? { status: 200 as const, body: { ...body, ...repeatedRefusal(made) } } : { body });
  }

  return {
    payX402Request({ body: asked, query: { waitSeconds } }, { deadline, principal }) {
      const wrong = wrongRequest(asked);
      if (wrong !== null) return Promise.resolve(refused(wrong));
      deadline.moveTo(deadline.elapsedMs + PURCHASE_MS);
      const key = `${principal.agent._id}/${shortHash(asked.idempotencyKey)}`;
      return turns.run(key, () => buy({ principal, asked, deadline, waitSeconds }));
    },
  };
}

/** Waits only for a person's decision: once the shop has answered, a signed payment is not waited for. */
const heldOnly = ({ approval }: RecordedPayment, call: Call): Call =>
  approval === null || approval.resolution !== null ? { ...call, waitSeconds: 0 } : call;

/** Whether a payment is decided and approved but perhaps not made. Making it requires its request. */
const isToBeMade = ({ approval, transaction }: RecordedPayment): boolean =>
  transaction.status === "pending" && (approval === null || approval.resolution !== null);

function wrongRequest({ body, method }: Asked): Refusal | null {
  if (method !== "GET" || body === undefined) return null;
  const issues = [{ path: "body", message: "does not go with the method GET" }];
  return refusal("VALIDATION_FAILED", undefined, { issues });
}

const requestOf = ({ body, headers, method, url }: Asked): ShopRequest => ({
  url,
  method,
  headers,
  body: body ?? null,
});

const answerView = ({ isCut, ...answer }: ShopAnswer) => ({ ...answer, isTruncated: isCut });
