import type { FirstKey } from "../../../src/domain/agent/access.ts";
import { must } from "./violation.ts";

/** An agent's keys, by their ids: at most one is active at a time, and what is dead stays dead. */
export class KeyModel {
  /** Of the organization's key that created the agent; null: a person did. */
  readonly lineageId: string | null;
  /** The end of the window in which a replay of the create delivers the first key again. */
  readonly deliverableUntil: number;
  readonly #keys = new Map<string, "active" | "dead">();
  isTouchedByPerson = false;
  authenticatedAt: number | null = null;
  provenAt: number | null = null;

  constructor({ deliverableUntil, keyId, lineageId }: FirstKey) {
    this.lineageId = lineageId;
    this.deliverableUntil = deliverableUntil;
    this.#keys.set(keyId, "active");
  }

  isActive(keyId: string): boolean {
    return this.#keys.get(keyId) === "active";
  }

  isDead(keyId: string): boolean {
    return this.#keys.get(keyId) === "dead";
  }

  activeKeyId(): string | null {
    const active = [...this.#keys].filter(([, state]) => state === "active").map(([keyId]) => keyId);
    must(active.length <= 1, "an agent has two active keys");
    return active[0] ?? null;
  }

  isWindowOver(now: number): boolean {
    return now >= this.deliverableUntil;
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
