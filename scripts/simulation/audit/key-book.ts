import { must } from "./violation.ts";
import type { KeysAtFirst } from "./observer.ts";

/** An agent's keys, by their ids: at most one is active at a time, and what is dead stays dead. */
export class KeyBook {
  /** Whether the actor was told of the key that the agent was created with. */
  readonly isKnown: boolean;
  /** Of the organization's key that created the agent; null: a person did, or nobody knows. */
  readonly lineageId: string | null;
  /** The end of the window in which a replay of the create delivers the first key again; null: there is none. */
  readonly deliverableUntil: number | null;
  readonly #keys = new Map<string, "active" | "dead">();
  isTouchedByPerson = false;
  authenticatedAt: number | null = null;
  provenAt: number | null = null;
  isErased = false;

  constructor({ firstKey, recordedKeyId }: KeysAtFirst) {
    this.isKnown = firstKey !== null;
    this.lineageId = firstKey?.lineageId ?? null;
    this.deliverableUntil = firstKey?.deliverableUntil ?? null;
    const active = firstKey?.keyId ?? recordedKeyId;
    if (active !== null) this.#keys.set(active, "active");
  }

  isActive(keyId: string): boolean {
    return this.#keys.get(keyId) === "active";
  }

  /** Whether an actor that may not know of the agent's keys has to take it for the agent's. */
  mayBe(keyId: string): boolean {
    const isKnown = this.isKnown || this.isTouchedByPerson || this.authenticatedAt !== null;
    return !isKnown || this.isActive(keyId);
  }

  activeKeyId(): string | null {
    const active = [...this.#keys].filter(([, state]) => state === "active").map(([keyId]) => keyId);
    must(active.length <= 1, "an agent has two active keys");
    return active[0] ?? null;
  }

  isWindowOver(now: number): boolean {
    return this.deliverableUntil === null || now >= this.deliverableUntil;
  }

  mint(keyId: string): void {
    this.#keys.set(keyId, "active");
    this.isTouchedByPerson = true;
  }

  revoke(keyId: string): void {
    this.#keys.set(keyId, "dead");
    this.isTouchedByPerson = true;
  }

  /** With their agent's archive. */
  die(): void {
    for (const keyId of this.#keys.keys()) this.#keys.set(keyId, "dead");
  }
}
