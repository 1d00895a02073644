import { type Address, maxUint256, zeroAddress } from "viem";
import type { Said } from "../support/calls.ts";

/** A deed with the addresses and the id that it is carried out with. */
export type Order =
  | {
      readonly kind: "spend";
      readonly id: string;
      readonly token: Address;
      readonly to: Address;
      readonly amount: bigint;
    }
  | {
      readonly kind: "setLimit";
      readonly token: Address;
      readonly cap: bigint;
      readonly period: bigint;
    }
  | {
      readonly kind: "setCeiling";
      readonly token: Address;
      readonly cap: bigint;
      readonly period: bigint;
    }
  | { readonly kind: "clearCeiling"; readonly token: Address }
  | { readonly kind: "withdraw"; readonly token: Address; readonly to: Address; readonly amount: bigint }
  | { readonly kind: "setSpender"; readonly to: Address }
  | { readonly kind: "detach" }
  | { readonly kind: "renounceOwnership" };

/** The payments since `from`, an index into the token's list, count until `until`. */
interface Window {
  readonly from: number;
  readonly until: bigint;
}

interface Limit {
  readonly cap: bigint;
  readonly period: bigint;
  /** The running one when the limit was last set, if there was one. */
  readonly window: Window | null;
}

interface TokenBook {
  readonly payments: { at: bigint; amount: bigint }[];
  balance: bigint;
  limit: Limit;
  ceiling: Limit;
}

const NO_LIMIT: Limit = { cap: 0n, period: 0n, window: null };
const NO_CEILING: Limit = { cap: maxUint256, period: 0n, window: null };
const PANIC_OVERFLOW = 17n;

/** What the wallet should be: payments in a list, and every sum taken anew from it. */
export class Book {
  readonly #tokens = new Map<Address, TokenBook>();
  readonly #ids = new Set<string>();
  readonly owner: Address;
  readonly wallet: Address;
  spender: Address;

  constructor(wallet: Address, owner: Address, spender: Address) {
    [this.wallet, this.owner, this.spender] = [wallet, owner, spender];
  }

  minted(token: Address, amount: bigint): void {
    this.#token(token).balance += amount;
  }

  /** The error that the order must end with, or null if it must be carried out. */
  refusal(by: Address, order: Order, now: bigint): Said | null {
    if (order.kind === "spend" || order.kind === "setLimit" || order.kind === "detach") {
      if (by !== this.spender) return { name: "NotSpender", args: [by] };
    } else if (by !== this.owner) return { name: "OwnableUnauthorizedAccount", args: [by] };
    if (order.kind === "renounceOwnership") return { name: "OwnershipNotRenounceable", args: [] };
    if (order.kind === "spend") return this.#spendRefusal(order, now);
    if (order.kind === "withdraw") return this.#recipientRefusal(order) ?? this.#balanceRefusal(order);
    return null;
  }

  #spendRefusal(order: Order & { kind: "spend" }, now: bigint): Said | null {
    const { id, token, amount } = order;
    if (this.#ids.has(id)) return { name: "AlreadySpent", args: [id] };
    if (amount === 0n) return { name: "InvalidAmount", args: [] };
    const wrongRecipient = this.#recipientRefusal(order);
    if (wrongRecipient !== null) return wrongRecipient;
    const [limit, ceiling] = [this.usage(token, "limit", now), this.usage(token, "ceiling", now)];
    if (amount > limit.available) return { name: "LimitExceeded", args: [token, limit.available, amount] };
    // Without a ceiling there is nothing to exceed but the numbers themselves.
    if (amount > ceiling.available && this.#token(token).ceiling !== NO_CEILING)
      return { name: "CeilingExceeded", args: [token, ceiling.available, amount] };
    if (this.total(token) + amount > maxUint256) return { name: "Panic", args: [PANIC_OVERFLOW] };
    return this.#balanceRefusal(order);
  }

  #recipientRefusal({ token, to }: { token: Address; to: Address }): Said | null {
    const isValid = to !== zeroAddress && to !== this.wallet && to !== token;
    return isValid ? null : { name: "InvalidRecipient", args: [to] };
  }

  #balanceRefusal({ token, amount }: { token: Address; amount: bigint }): Said | null {
    const { balance } = this.#token(token);
    return amount <= balance
      ? null
      : { name: "ERC20InsufficientBalance", args: [this.wallet, balance, amount] };
  }

  /** Records an order that was carried out. */
  record(order: Order, now: bigint): void {
    if (order.kind === "setSpender") this.spender = order.to;
    else if (order.kind === "detach") this.spender = zeroAddress;
    else if (order.kind !== "renounceOwnership") {
      const book = this.#token(order.token);
      if (order.kind === "clearCeiling") book.ceiling = NO_CEILING;
      else if (order.kind === "setLimit") book.limit = changed(book, book.limit, order, now);
      else if (order.kind === "setCeiling") book.ceiling = changed(book, book.ceiling, order, now);
      else book.balance -= order.amount;
      if (order.kind === "spend") {
        this.#ids.add(order.id);
        book.payments.push({ at: now, amount: order.amount });
      }
    }
  }

  total = (token: Address): bigint => sum(this.#token(token).payments);
  balance = (token: Address): bigint => this.#token(token).balance;
  isSpent = (id: string): boolean => this.#ids.has(id);

  /** What the view of a limit or ceiling must answer. */
  usage(token: Address, which: "limit" | "ceiling", now: bigint): Usage {
    const book = this.#token(token);
    const { cap, period } = book[which];
    const from = period === 0n ? 0 : (running(book, book[which], now)?.from ?? book.payments.length);
    const spent = sum(book.payments.slice(from));
    return { cap, period, spent, available: cap > spent ? cap - spent : 0n };
  }

  #token(token: Address): TokenBook {
    const book = this.#tokens.get(token) ?? {
      payments: [],
      balance: 0n,
      limit: NO_LIMIT,
      ceiling: NO_CEILING,
    };
    this.#tokens.set(token, book);
    return book;
  }
}

/** A limit as the wallet shows it. */
export interface Usage {
  readonly cap: bigint;
  readonly period: bigint;
  readonly spent: bigint;
  readonly available: bigint;
}

const sum = (payments: readonly { amount: bigint }[]): bigint =>
  payments.reduce((total, { amount }) => total + amount, 0n);

/** The window that is running now: the one of the last change, while it lasts, and then those of the fixed grid. */
function running({ payments }: TokenBook, { period, window }: Limit, now: bigint): Window | null {
  if (window !== null && now < window.until) return window;
  if (period === 0n) return null;
  const start = now - (now % period);
  const from = payments.findIndex(({ at }) => at >= start);
  return { from: from === -1 ? payments.length : from, until: start + period };
}

/** A limit after it was set: what counted in the running window goes on counting. */
function changed(
  book: TokenBook,
  limit: Limit,
  { cap, period }: { cap: bigint; period: bigint },
  now: bigint,
): Limit {
  const window = running(book, limit, now);
  if (period === 0n) return { cap, period, window };
  return {
    cap,
    period,
    window: { from: window?.from ?? book.payments.length, until: now - (now % period) + period },
  };
}
