import { CallRefused } from "./call-refused.ts";
import { cardDataOf } from "./card-data.ts";
import { DEFAULT_SETTINGS } from "./settings.ts";
import type { ObjectStore } from "./store.ts";
import type {
  Authorization,
  Card,
  Cardholder,
  Decision,
  Dispute,
  Endpoint,
  Merchant,
  NetworkEvent,
  Settings,
  Stored,
  Totals,
  Transaction,
} from "./shapes.ts";

const API_VERSION = "2026-08-26.dahlia";

type Moved = Omit<Transaction, keyof Stored | "currency" | "dispute" | "livemode" | "metadata">;

const refused = (reason: string): Decision => ({ approved: false, reason });
export interface NetworkDependencies {
  /** Id of the account. */
  readonly id: string;
  readonly store: ObjectStore;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Asks the owner of a card about a request. */
  readonly ask: (request: NetworkEvent, settings: Settings) => Promise<Decision>;
  readonly onEvent: (event: NetworkEvent, settings: Settings) => void;
}

/**
 * A card network with its issuer and its merchants. It keeps its own books, asks before it authorizes, and performs
 * every merchant action. Totals are counted with each action, separately from the objects it shows, so that the two can
 * be compared.
 */
export class CardNetwork {
  readonly store: ObjectStore;
  readonly #dependencies: NetworkDependencies;

  constructor(dependencies: NetworkDependencies) {
    this.#dependencies = dependencies;
    this.store = dependencies.store;
  }

  get id(): string {
    return this.#dependencies.id;
  }

  get settings(): Settings {
    return { ...DEFAULT_SETTINGS, ...this.store.get<Settings>("simulator.settings", DEFAULT_SETTINGS.id) };
  }

  configure(changes: Partial<Omit<Settings, keyof Stored>>): Settings {
    return this.store.put({ ...this.settings, ...changes });
  }

  /** Returns a new id of this kind, and the time. */
  fresh(prefix: string): { readonly id: string; readonly created: number } {
    // The account's part keeps ids unique across accounts, as at an issuer.
    const id = `${prefix}_sim${this.id.slice(-8)}${String(this.store.nextNumber()).padStart(8, "0")}`;
    return { id, created: this.#now };
  }

  get #now(): number {
    return Math.floor(this.#dependencies.now() / 1_000);
  }

  get<T extends Stored>(object: T["object"], id: string): T {
    const found = this.store.get<T>(object, id);
    if (found !== null) return found;
    throw new CallRefused(`No such ${object}: '${id}'`, 404, "resource_missing");
  }

  get availableCents(): number {
    return this.store
      .all<Totals>("simulator.totals")
      .reduce(
        (left, { captured, credited, held, recalled }) => left - held - captured + credited - recalled,
        this.settings.fundedCents,
      );
  }

  totalsOf(cardId: string): readonly Totals[] {
    return this.store.all<Totals>("simulator.totals").filter((totals) => totals.cardId === cardId);
  }

  addCardholder(given: Pick<Cardholder, "metadata" | "name" | "type">): Cardholder {
    const made = this.fresh("ich");
    return this.store.put({
      ...made,
      object: "issuing.cardholder",
      status: "active",
      livemode: false,
      ...given,
    });
  }

  addCard(given: Pick<Card, "cardholder" | "metadata" | "spending_controls" | "status">): Card {
    const made = this.fresh("ic");
    const last4 = cardDataOf(this.id, made.id).number.slice(-4);
    const fixed = { object: "issuing.card", currency: "usd", type: "virtual", livemode: false } as const;
    return this.store.put({ ...made, ...fixed, last4, ...given });
  }

  setCardStatus(id: string, status: Card["status"]): Card {
    const found = this.get<Card>("issuing.card", id);
    if (found.status === "canceled") throw new CallRefused("You cannot change a canceled card.");
    return this.store.put({ ...found, status });
  }

  addEndpoint(given: Pick<Endpoint, "enabled_events" | "metadata" | "url">): Endpoint {
    const made = this.fresh("we");
    const fixed = { object: "webhook_endpoint", livemode: false, status: "enabled" } as const;
    return this.store.put({ ...made, ...fixed, secret: `whsec_simulator_${made.id}`, ...given });
  }

  topUp(amountCents: number): Stored {
    this.configure({ fundedCents: this.settings.fundedCents + amountCents });
    const topup = {
      ...this.fresh("tu"),
      object: "topup",
      amount: amountCents,
      currency: "usd",
      status: "succeeded",
    };
    this.#emit("topup.succeeded", topup);
    return topup;
  }

  async authorize(cardId: string, amount: number, merchant: Merchant): Promise<Authorization> {
    const made: Authorization = {
      ...this.fresh("iauth"),
      object: "issuing.authorization",
      amount: 0,
      approved: false,
      card: this.get<Card>("issuing.card", cardId),
      currency: "usd",
      livemode: false,
      merchant_data: merchant,
      metadata: {},
      pending_request: null,
      request_history: [],
      status: "pending",
      transactions: [],
    };
    this.#count(cardId, made.id, {});
    return this.#request(this.store.put(made), amount);
  }

  async increment(id: string, amount: number): Promise<Authorization> {
    return this.#request(this.#open(id), amount);
  }

  /** Captures from an authorization. `close` as in Stripe's test helpers: no further capture is expected. */
  capture(id: string, amount: number | null, close: boolean): Authorization {
    return this.#capture(this.#open(id), amount, close);
  }

  /** Captures any amount after the authorization has ended. */
  captureLate(id: string, amount: number): Authorization {
    return this.#capture(this.get<Authorization>("issuing.authorization", id), amount, true);
  }

  reverse(id: string, amount: number | null): Authorization {
    const found = this.#open(id);
    const { held } = this.#totals(found.card.id, id);
    const back = Math.min(amount ?? held, held);
    if (back === held) return this.#end(found, "reversed");
    this.#count(found.card.id, id, { held: held - back, isReduced: true });
    return this.#updated({ ...found, amount: found.amount - back });
  }

  expire(id: string): Authorization {
    return this.#end(this.#open(id), "expired");
  }

  refund(transactionId: string, amount: number | null): Transaction {
    const captured = this.get<Transaction>("issuing.transaction", transactionId);
    if (captured.type !== "capture") throw new CallRefused("Only captures can be refunded.");
    return this.#credit(
      captured.card,
      captured.authorization,
      amount ?? -captured.amount,
      captured.merchant_data,
    );
  }

  refundUnlinked(cardId: string, amount: number, merchant: Merchant): Transaction {
    return this.#credit(this.get<Card>("issuing.card", cardId).id, null, amount, merchant);
  }

  reverseRefund(transactionId: string): Transaction {
    const { amount, authorization, card, merchant_data, type } = this.get<Transaction>(
      "issuing.transaction",
      transactionId,
    );
    if (type !== "refund" || amount <= 0) throw new CallRefused("Only refunds can be taken back.");
    const { recalled } = this.#totals(card, authorization);
    this.#count(card, authorization, { recalled: recalled + amount });
    return this.#transact({ amount: -amount, authorization, card, merchant_data, type });
  }

  forceCapture(cardId: string, amount: number, merchant: Merchant): Transaction {
    const { id } = this.get<Card>("issuing.card", cardId);
    const { captured } = this.#totals(id, null);
    this.#count(id, null, { captured: captured + amount });
    return this.#transact({
      amount: -amount,
      authorization: null,
      card: id,
      merchant_data: merchant,
      type: "capture",
    });
  }

  addDispute(
    given: Pick<Dispute, "evidence" | "metadata" | "transaction"> & { amount: number | null },
  ): Dispute {
    const disputed = this.get<Transaction>("issuing.transaction", given.transaction);
    if (disputed.type !== "capture" || disputed.dispute !== null)
      throw new CallRefused("This transaction can't be disputed, or is disputed already.");
    const amount = given.amount ?? -disputed.amount;
    if (amount <= 0 || amount > -disputed.amount)
      throw new CallRefused("The amount is not the transaction's.");
    const made = this.store.put<Dispute>({
      ...this.fresh("idp"),
      object: "issuing.dispute",
      balance_transactions: [],
      currency: "usd",
      livemode: false,
      status: "unsubmitted",
      ...given,
      amount,
    });
    this.#put({ ...disputed, dispute: made.id });
    this.#emit("issuing_dispute.created", made);
    return made;
  }

  submitDispute(id: string): Dispute {
    const found = this.get<Dispute>("issuing.dispute", id);
    if (found.status !== "unsubmitted") throw new CallRefused("The dispute was submitted already.");
    const { authorization, card } = this.get<Transaction>("issuing.transaction", found.transaction);
    const { disputed } = this.#totals(card, authorization);
    this.#count(card, authorization, { disputed: disputed + found.amount });
    return this.#changedDispute({ ...found, status: "submitted" }, "issuing_dispute.submitted");
  }

  /** Advances a dispute. `credit`: the network lends the amount until it has decided. */
  endDispute(id: string, end: "credit" | "lost" | "won"): Dispute {
    const found = this.get<Dispute>("issuing.dispute", id);
    if (found.status !== "submitted") throw new CallRefused("The dispute is not under way.");
    const { authorization, card } = this.get<Transaction>("issuing.transaction", found.transaction);
    const totals = this.#totals(card, authorization);
    const isCredited = found.balance_transactions.length > 0;
    const change = (amount: number): Dispute["balance_transactions"] => [
      ...found.balance_transactions,
      { amount, created: this.#now },
    ];
    if (end !== "lost" && !isCredited) {
      this.#count(card, authorization, { credited: totals.credited + found.amount });
      const credited: Dispute = { ...found, balance_transactions: change(found.amount) };
      const next: Dispute = end === "won" ? { ...credited, status: "won" } : credited;
      return this.#changedDispute(next, "issuing_dispute.funds_reinstated");
    }
    if (end === "lost" && isCredited) {
      this.#count(card, authorization, { recalled: totals.recalled + found.amount });
      const rescinded: Dispute = { ...found, status: "lost", balance_transactions: change(-found.amount) };
      return this.#changedDispute(rescinded, "issuing_dispute.funds_rescinded");
    }
    const status = end === "credit" ? found.status : end;
    return this.#changedDispute({ ...found, status }, "issuing_dispute.closed");
  }

  async #request(before: Authorization, amount: number): Promise<Authorization> {
    const asked = { amount, currency: "usd", is_amount_controllable: false } as const;
    const pending: Authorization = {
      ...before,
      card: this.get<Card>("issuing.card", before.card.id),
      pending_request: asked,
    };
    const answer = this.#ownDecision(pending, amount) ?? (await this.#asked(pending));
    // Another request or a capture may have arrived meanwhile.
    const objection = answer.approved ? this.#ownDecision(pending, amount) : null;
    const decision = objection?.approved === false ? objection : answer;
    const found = this.get<Authorization>("issuing.authorization", before.id);
    const { held, requests } = this.#totals(found.card.id, found.id);
    const isFirst = requests === 0;
    const isOpen = decision.approved ? { isOpen: found.status === "pending" } : {};
    const granted = decision.approved && found.status === "pending" ? amount : 0;
    this.#count(found.card.id, found.id, { requests: requests + 1, held: held + granted, ...isOpen });
    const created = this.#now;
    const next: Authorization = {
      ...found,
      amount: isFirst && !decision.approved ? amount : found.amount + granted,
      approved: isFirst ? decision.approved : found.approved,
      request_history: [...found.request_history, { amount, currency: "usd", created, ...decision }],
      status: isFirst && !decision.approved ? "closed" : found.status,
    };
    return this.#updated(next, isFirst ? "issuing_authorization.created" : undefined);
  }

  /** Returns the network's own decision; null if the owner of the card has to be asked. */
  #ownDecision(pending: Authorization, amount: number): Decision | null {
    const card = this.get<Card>("issuing.card", pending.card.id);
    if (card.status !== "active")
      return refused(card.status === "canceled" ? "card_canceled" : "card_inactive");
    const { allowed_categories, blocked_categories, spending_limits } = card.spending_controls;
    const { category } = pending.merchant_data;
    const isAllowed = allowed_categories?.includes(category) ?? true;
    if (!isAllowed || blocked_categories?.includes(category) === true) return refused("spending_controls");
    const [limit] = spending_limits;
    const used = this.totalsOf(card.id).reduce((total, { captured, held }) => total + captured + held, 0);
    if (limit !== undefined && used + amount > limit.amount) return refused("spending_controls");
    if (amount > this.availableCents) return refused("insufficient_funds");
    return this.settings.authorizationUrl === null ? { approved: true, reason: "card_active" } : null;
  }

  #asked(pending: Authorization): Promise<Decision> {
    const { settings } = this;
    const { request_history: _history, ...unnumbered } = pending;
    const shown = settings.numbersRequests ? pending : unnumbered;
    return this.#dependencies.ask(this.#event("issuing_authorization.request", shown), settings);
  }

  #open(id: string): Authorization {
    const found = this.get<Authorization>("issuing.authorization", id);
    if (found.status !== "pending") throw new CallRefused(`The authorization is ${found.status}.`);
    return found;
  }

  #capture(found: Authorization, given: number | null, close: boolean): Authorization {
    const { captured, held } = this.#totals(found.card.id, found.id);
    const amount = given ?? held;
    if (amount <= 0) throw new CallRefused("There is nothing to capture.");
    const isOpen = found.status === "pending" && !close && amount < held;
    const left = isOpen ? held - amount : 0;
    this.#count(found.card.id, found.id, { captured: captured + amount, held: left, isOpen });
    this.#transact({
      amount: -amount,
      authorization: found.id,
      card: found.card.id,
      merchant_data: found.merchant_data,
      type: "capture",
    });
    const now = this.get<Authorization>("issuing.authorization", found.id);
    const falls = this.settings.amountFalls ? { amount: Math.max(0, now.amount - amount) } : {};
    return this.#updated({
      ...now,
      ...falls,
      status: found.status === "pending" && !isOpen ? "closed" : found.status,
    });
  }

  #end(found: Authorization, status: "expired" | "reversed"): Authorization {
    this.#count(found.card.id, found.id, { held: 0, isOpen: false });
    return this.#updated({ ...found, status });
  }

  #credit(cardId: string, authorization: string | null, amount: number, merchant: Merchant): Transaction {
    const { credited } = this.#totals(cardId, authorization);
    this.#count(cardId, authorization, { credited: credited + amount });
    return this.#transact({ amount, authorization, card: cardId, merchant_data: merchant, type: "refund" });
  }

  #transact(given: Moved): Transaction {
    const fixed = {
      object: "issuing.transaction",
      currency: "usd",
      dispute: null,
      livemode: false,
      metadata: {},
    } as const;
    const made = this.#put({ ...this.fresh("ipi"), ...fixed, ...given });
    this.#emit("issuing_transaction.created", made);
    return made;
  }

  /** Stores a transaction, also in its authorization. */
  #put(transaction: Transaction): Transaction {
    const { authorization, id } = transaction;
    const of =
      authorization === null ? null : this.store.get<Authorization>("issuing.authorization", authorization);
    if (of !== null) {
      const others = of.transactions.filter((each) => each.id !== id);
      this.store.put<Authorization>({ ...of, transactions: [...others, transaction] });
    }
    return this.store.put(transaction);
  }

  #updated(authorization: Authorization, type = "issuing_authorization.updated"): Authorization {
    const stored = this.store.put(authorization);
    this.#emit(type, stored);
    return stored;
  }

  #changedDispute(dispute: Dispute, type: string): Dispute {
    this.#emit(type, this.store.put(dispute));
    return dispute;
  }

  #totals(cardId: string, authorization: string | null): Totals {
    const id = `totals/${authorization ?? cardId}`;
    const nothing = { requests: 0, held: 0, captured: 0, credited: 0, recalled: 0, disputed: 0 };
    const started = { id, object: "simulator.totals", created: 0, cardId, authorization } as const;
    return (
      this.store.get<Totals>("simulator.totals", id) ?? {
        ...started,
        ...nothing,
        isOpen: false,
        isReduced: false,
      }
    );
  }

  #count(cardId: string, authorization: string | null, changes: Partial<Totals>): void {
    this.store.put({ ...this.#totals(cardId, authorization), ...changes });
  }

  #event(type: string, object: unknown): NetworkEvent {
    const fixed = { object: "event", api_version: API_VERSION, livemode: false } as const;
    return { ...this.fresh("evt"), ...fixed, type, data: { object } };
  }

  #emit(type: string, object: unknown): void {
    this.#dependencies.onEvent(this.store.put(this.#event(type, object)), this.settings);
  }
}
