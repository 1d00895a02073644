import { type Address, zeroAddress } from "viem";
import type { Order } from "./book.ts";

interface Rule {
  readonly cap: bigint;
  readonly period: bigint;
  readonly since: number;
}

/**
 * Looks only at what was carried out, and says what must never be: it knows nothing of how the wallet counts, so that a
 * misunderstanding that wallet and book share is still found.
 */
export class Auditor {
  readonly #payments: { at: bigint; token: Address; amount: bigint; id: string }[] = [];
  readonly #rules = new Map<string, Rule>();
  readonly #owner: Address;
  #spender: Address;

  constructor(owner: Address, spender: Address) {
    [this.#owner, this.#spender] = [owner, spender];
  }

  /** Throws if what was carried out must never be. */
  carriedOut(by: Address, order: Order, at: bigint): void {
    const byOwner = ["withdraw", "setSpender", "setCeiling", "clearCeiling", "renounceOwnership"].includes(
      order.kind,
    );
    if (byOwner && by !== this.#owner) throw new Error(`audit: ${order.kind} by another than the owner`);
    if (!byOwner && this.#spender === zeroAddress) throw new Error(`audit: ${order.kind} after detachment`);
    if (!byOwner && by !== this.#spender) throw new Error(`audit: ${order.kind} by another than the spender`);
    if (order.kind === "renounceOwnership") throw new Error("audit: ownership was given up");
    if (order.kind === "setSpender") this.#spender = order.to;
    if (order.kind === "detach") this.#spender = zeroAddress;
    if (order.kind === "setLimit" || order.kind === "setCeiling") this.#ruled(order.kind, order);
    if (order.kind === "clearCeiling") this.#rules.delete(`setCeiling ${order.token}`);
    if (order.kind === "spend") this.#paid(order, at);
  }

  #ruled(kind: string, { token, cap, period }: { token: Address; cap: bigint; period: bigint }): void {
    const before = this.#rules.get(`${kind} ${token}`);
    const since = before?.period === period && before.cap === cap ? before.since : this.#payments.length;
    this.#rules.set(`${kind} ${token}`, { cap, period, since });
  }

  #paid({ id, token, amount }: Order & { kind: "spend" }, at: bigint): void {
    if (this.#payments.some((payment) => payment.id === id)) throw new Error("audit: an id was spent twice");
    this.#payments.push({ at, token, amount, id });
    for (const kind of ["setLimit", "setCeiling"]) {
      const rule = this.#rules.get(`${kind} ${token}`);
      if (rule === undefined && kind === "setLimit") throw new Error("audit: spent without a limit");
      if (rule === undefined) continue;
      const { cap, period, since } = rule;
      const start = period === 0n ? 0n : at - (at % period);
      const counted = this.#payments.slice(period === 0n ? 0 : since);
      const spent = counted.reduce(
        (sum, p) => (p.token === token && p.at >= start ? sum + p.amount : sum),
        0n,
      );
      if (spent > cap) throw new Error(`audit: ${kind}: ${String(spent)} of ${String(cap)} in a period`);
    }
  }
}
