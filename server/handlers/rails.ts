import { randomUUID } from "node:crypto";
import { type Refusal, refusal } from "../../src/domain/errors.ts";
import { ok, refused } from "../../src/domain/result.ts";
import { TimeoutError, withTimeout } from "../../src/lib/with-timeout.ts";
import {
  type CardIssuer,
  type IssuerRefusal,
  IssuerUnreachable,
  type Trial,
} from "../../src/payments/card-issuer.ts";
import type { CardConnection, CardConnectionDocument } from "../../src/rails/card/connections.ts";
import { CHECK_CENTS, UNANSWERED_CENTS } from "../../src/rails/card/inbound.ts";
import type { OwnCard } from "../../src/rails/card/issued.ts";
import { CHECK_PREFIX } from "../../src/rails/card/places.ts";
import { railModesOf } from "../../src/rails/rails.ts";
import type { TransactionDocument } from "../../src/store/documents.ts";
import { transactionView } from "../../src/views/views.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

type RailHandlers = Pick<
  Handlers,
  | "checkCardIssuer"
  | "connectCardIssuer"
  | "disconnectCardIssuer"
  | "disputeTransaction"
  | "listRails"
  | "viewCard"
>;

/** Timeout for reading an issuer's balance. After that the balance is shown as unavailable. */
const BALANCE_TIMEOUT_MS = 2_000;

const NO_PUBLISHABLE_KEY = refusal(
  "ISSUER_REFUSED",
  "Cards can't be shown: the connection has no publishable key. An owner adds it in Settings, Rails.",
);
const NO_CARD = refusal("NOT_FOUND", "The payment has no card at an issuer.");
const OTHER_ISSUER = refusal("RAIL_IN_USE", "Another issuer is connected; disconnect it first.");
const OTHER_ACCOUNT = refusal(
  "RAIL_IN_USE",
  "The key is of another account, or another mode, than the connected one; disconnect that first.",
);
const CHANGED = refusal("RAIL_IN_USE", "The connection was changed at the same time; repeat the request.");

/** Fields of a connection in the audit log. */
const noted = ({ issuer, hasAuthorizationSecret, isTest, keyHint }: CardConnectionDocument) => ({
  issuer,
  isTest,
  keyHint,
  hasAuthorizationSecret,
});

export function railHandlers(dependencies: HandlerDependencies): RailHandlers {
  const { baseUrl, cardConnections: connections, cards, clock, collections, wallets } = dependencies;

  const viewOf = ({ _id: id, ...record }: CardConnectionDocument) => ({
    id,
    cardIssuer: record.issuer,
    isTest: record.isTest,
    keyHint: record.keyHint,
    publishableKey: record.publishableKey,
    hasAuthorizationSecret: record.hasAuthorizationSecret,
    authorizationUrl: authorizationUrl(id),
    eventsUrl: eventsUrl(id),
    createdAt: record.createdAt.toISOString(),
    lastRequestAt: record.lastRequestAt?.toISOString() ?? null,
    lastEventAt: record.lastEventAt?.toISOString() ?? null,
    readThrough: record.readThrough.toISOString(),
    timeoutCheck: timeoutView(record.timeoutCheck),
    fault: record.fault,
  });
  const eventsUrl = (id: string): string => `${baseUrl}/v1/rails/${id}/events`;
  const authorizationUrl = (id: string): string => `${baseUrl}/v1/rails/${id}/authorizations`;

  async function connected(organizationId: string, issuer: string): Promise<CardConnection | null> {
    const found = await connections.fresh(organizationId);
    return found?.record.issuer === issuer ? found : null;
  }

  /**
   * Returns a payment's card; null if it has none. The card's own record proves the organization: the payment's, changed
   * in MongoDB, must not open another organization's card.
   */
  async function cardOf({ _id, organizationId }: TransactionDocument): Promise<OwnCard | null> {
    const own = await cards.ownCard(_id);
    return own?.card.organizationOfCard === organizationId ? own : null;
  }

  /** Removes a connection, unless it is refused: a card whose connection is gone could be neither read nor closed. */
  async function removed(record: CardConnectionDocument): Promise<Refusal | null> {
    // A card that is ordered from now on is not made, and one that was ordered before is open.
    const ending = await connections.beginEnding(record);
    try {
      const kept = await tornDown(record);
      if (kept !== null) return kept;
      return (await connections.remove(record, ending)) ? null : CHANGED;
    } finally {
      await connections.cancelEnding(record, ending);
    }
  }

  async function tornDown({ _id, issuer, organizationId }: CardConnectionDocument): Promise<Refusal | null> {
    if (await cards.hasOpen(_id)) return refusal("RAIL_IN_USE");
    // A process without an adapter for the issuer can only erase the key.
    const connection = connections.kindOf(issuer) === null ? null : await connected(organizationId, issuer);
    const ended = connection === null ? null : await reached(connection.issuer.tearDown());
    // A key that the issuer has revoked can tear nothing down there, and is removed all the same.
    return ended?.ok === false && ended.code !== "KEY_REFUSED" ? ended.refusal : null;
  }

  return {
    async listRails(_input, { principal: { organizationId } }) {
      const record = await connections.recordOf(organizationId);
      const isUsable = record !== null && connections.kindOf(record.issuer) !== null;
      const usable = isUsable ? await connections.fresh(organizationId) : null;
      return ok({
        body: {
          rails: railModesOf(wallets, record),
          connection: record === null ? null : viewOf(record),
          balanceCents: usable === null ? null : await balanceOf(usable.issuer),
          issuers: connections.issuers,
        },
      });
    },

    async connectCardIssuer(
      { body: { apiKey, authorizationSecret, publishableKey: givenKey }, params: { cardIssuer: issuer } },
      { audit, principal },
    ) {
      const { organizationId } = principal;
      const kind = connections.kindOf(issuer);
      if (kind === null) return refused(refusal("NOT_FOUND", "There is no such issuer."));
      const known = await connections.fresh(organizationId);
      if (known !== null && known.record.issuer !== issuer) return refused(OTHER_ISSUER);
      const key = apiKey ?? known?.account.apiKey;
      if (key === undefined) {
        const issues = [{ path: "apiKey", message: "is required to connect" }];
        return refused(refusal("VALIDATION_FAILED", undefined, { issues }));
      }
      const secret = authorizationSecret ?? known?.account.authorizationSecret ?? null;
      const publishableKey = givenKey ?? known?.account.publishableKey ?? null;
      const before = known === null ? null : noted(known.record);
      await audit.begin({ before, after: { issuer } });
      const id = known?.id ?? connections.newId();
      let made = known?.account.made ?? null;
      // A disconnect that was begun may have removed the endpoint.
      const isEnding = known !== null && known.record.ending !== null;
      if (made === null || apiKey !== undefined || isEnding) {
        const organization = await collections.organizations.findOne({ _id: organizationId });
        const organizationName = organization?.name ?? "";
        const opened = kind.open({ apiKey: key, publishableKey, made, authorizationSecret: secret });
        const urls = { eventsUrl: eventsUrl(id), authorizationUrl: authorizationUrl(id) };
        const setUp = await reached(opened.setUp({ connectionId: id, organizationName, ...urls }));
        if (!setUp.ok) return refused(setUp.refusal);
        const isOther = setUp.value.accountId !== made?.accountId || setUp.value.isTest !== made.isTest;
        if (made !== null && isOther) return refused(OTHER_ACCOUNT);
        made = setUp.value;
      }
      const account = { apiKey: key, publishableKey, made, authorizationSecret: secret };
      const place = { id, organizationId, issuer, ...(known !== null && { ending: known.record.ending }) };
      if (!(await connections.put(place, account))) return refused(CHANGED);
      const connection = await connections.fresh(organizationId);
      if (connection === null) return refused(CHANGED);
      audit.change(before, noted(connection.record));
      return ok({ body: { connection: viewOf(connection.record) } });
    },

    async disconnectCardIssuer({ params: { cardIssuer: issuer } }, { audit, principal: { organizationId } }) {
      const record = await connections.recordOf(organizationId);
      if (record?.issuer !== issuer) return refused(refusal("NOT_FOUND"));
      if (await cards.hasOpen(record._id)) return refused(refusal("RAIL_IN_USE"));
      const before = noted(record);
      await audit.begin({ before, after: null });
      const kept = await removed(record);
      if (kept !== null) return refused(kept);
      audit.change(before, null);
      return ok({ body: undefined });
    },

    async checkCardIssuer({ params: { cardIssuer: issuer } }, { audit, principal: { organizationId } }) {
      const connection = await connected(organizationId, issuer);
      if (connection === null) return refused(refusal("NOT_FOUND"));
      if (!connection.record.isTest)
        return refused(refusal("ISSUER_REFUSED", "Only an account in test mode can be tried."));
      await audit.begin({ before: null, after: null });
      const transactionId = `${CHECK_PREFIX}${randomUUID()}`;
      const ordered = { organizationId, agentId: CHECK_PREFIX, transactionId, amountCents: 3 * CHECK_CENTS };
      await cards.order(ordered, connection, 0);
      try {
        const order = await cards.of(transactionId);
        const armed = order === null ? null : await cards.armed(ordered, order, false);
        const cardRef = (await cards.of(transactionId))?.cardRef ?? null;
        if (armed?.status === "failed") return refused(refusal("ISSUER_REFUSED", armed.reason));
        if (cardRef === null) throw new Error("a trial card was lost");
        const approved = await reached(connection.issuer.tryAuthorization(cardRef, CHECK_CENTS));
        if (!approved.ok) return refused(approved.refusal);
        const declined = await reached(connection.issuer.tryAuthorization(cardRef, CHECK_CENTS + 1));
        if (!declined.ok) return refused(declined.refusal);
        const unanswered = await reached(connection.issuer.tryAuthorization(cardRef, UNANSWERED_CENTS));
        if (!unanswered.ok) return refused(unanswered.refusal);
        const { isApproved, isTimedOut } = unanswered.value;
        const timeoutCheck = isTimedOut ? { isApproved, checkedAt: clock() } : null;
        await connections.note(connection, { timeoutCheck });
        return ok({
          body: {
            isWorking: approved.value.isApproved && !declined.value.isApproved && isTimedOut && !isApproved,
            approved: trialView(approved.value),
            refused: trialView(declined.value),
            unanswered: unansweredView(unanswered.value),
          },
        });
      } finally {
        await cards.close(transactionId, ordered);
      }
    },

    async viewCard({ body: { nonce } }, { audit, target }) {
      const own = await cardOf(target);
      if (own === null || own.card.cardRef === null) return refused(NO_CARD);
      const { cardRef } = own.card;
      const { account, issuer, record } = own.connection;
      const { publishableKey } = account;
      const scriptUrl = connections.kindOf(record.issuer)?.elements.scriptUrl ?? null;
      if (publishableKey === null || scriptUrl === null) return refused(NO_PUBLISHABLE_KEY);
      const script = { cardRef, scriptUrl, publishableKey };
      if (nonce === undefined)
        return ok({ body: { card: { ...script, ephemeralKey: null, expiresAt: null } } });
      await audit.begin({ before: null, after: null });
      const view = await reached(issuer.cardView(cardRef, nonce));
      if (!view.ok) return refused(view.refusal);
      const { ephemeralKey, expiresAt } = view.value;
      return ok({ body: { card: { ...script, ephemeralKey, expiresAt: expiresAt.toISOString() } } });
    },

    async disputeTransaction({ body: { amountCents, explanation, reason } }, { audit, target }) {
      const own = await cardOf(target);
      if (own === null || own.card.cardRef === null) return refused(NO_CARD);
      const after = { reason, amountCents: amountCents ?? target.amountCents };
      await audit.begin({ before: null, after });
      const dispute = { reason, explanation, ...(amountCents === undefined ? {} : { amountCents }) };
      const disputed = await reached(own.connection.issuer.dispute(own.card.cardRef, dispute));
      if (!disputed.ok) return refused(disputed.refusal);
      audit.change(null, after);
      return ok({ body: { transaction: transactionView(target) } });
    },
  };
}

/** Selects the fields of the API; an adapter may return more. */
const trialView = ({ isApproved, reason }: Trial) => ({ isApproved, reason });

const unansweredView = (trial: Trial) =>
  trial.isTimedOut
    ? { isApproved: trial.isApproved, reason: trial.isApproved ? TIMEOUT_APPROVES : TIMEOUT_DECLINES }
    : trialView(trial);

const TIMEOUT_DECLINES = "The service did not answer, and the network declined.";
const TIMEOUT_APPROVES =
  "The service did not answer, and the network approved. Choose at the issuer that a time-out declines.";

const timeoutView = (check: CardConnectionDocument["timeoutCheck"]) =>
  check === null ? null : { isApproved: check.isApproved, checkedAt: check.checkedAt.toISOString() };

async function balanceOf(issuer: CardIssuer): Promise<number | null> {
  try {
    const balance = await withTimeout(BALANCE_TIMEOUT_MS, issuer.balance());
    return balance.ok ? Math.max(0, balance.value) : null;
  } catch (error) {
    if (error instanceof TimeoutError || error instanceof IssuerUnreachable) return null;
    throw error;
  }
}

const UNREACHABLE = refusal("SERVICE_UNAVAILABLE", "The card issuer does not answer; repeat the request.", {
  retryAfterSeconds: 5,
});

/** Calls an issuer and translates its refusal into the service's own. */
async function reached<T>(
  calling: Promise<
    { readonly ok: true; readonly value: T } | { readonly ok: false; readonly refusal: IssuerRefusal }
  >,
) {
  try {
    const answer = await calling;
    if (answer.ok) return answer;
    const { code, reason } = answer.refusal;
    return { ok: false, code, refusal: refusal("ISSUER_REFUSED", reason) } as const;
  } catch (error) {
    if (!(error instanceof IssuerUnreachable)) throw error;
    return { ok: false, code: "UNREACHABLE", refusal: UNREACHABLE } as const;
  }
}
