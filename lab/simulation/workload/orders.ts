import type { AgentProfile } from "../../../src/domain/agent/state.ts";
import type { Payment, PaymentRequest } from "../../../src/domain/ledger/payment.ts";
import { mcOf } from "../../../src/domain/money.ts";
import { type Fate, FATES, recipientOf } from "../counterparts.ts";
import type { World } from "../world.ts";
import { HOUR, MINUTE, SECOND } from "./spans.ts";

const REPEATS_MAX = 4;
const RECENT_KEYS_MAX = 200;

/** Networks touch payments days after these, too. */
const LATE_FATES: readonly Fate[] = ["forced", "reverse", "recall"];

/** A payment that a client has asked for, and may ask for again. */
interface Order {
  readonly profile: AgentProfile;
  readonly keyHash: string;
  readonly payloadHash: string;
  readonly amountCents: number;
  readonly recipient: string;
  /** The key that it comes with: the agent's own, or one that was revoked. */
  readonly keyId: string;
}

/** The payments that clients ask for, and ask for again. */
export class Orders {
  readonly #world: World;
  readonly #orders: Order[] = [];
  /** A key that each agent had. */
  readonly #keys = new Map<string, string>();

  constructor(world: World) {
    this.#world = world;
  }

  pay(): void {
    const { profiles, random } = this.#world;
    // A few agents are busier than others.
    const profile = random.chance(0.4) ? profiles[random.between(0, 2)] : random.pick(profiles);
    if (profile !== undefined) this.order(profile, random.between(1, random.chance(0.8) ? 30 : 120));
  }

  /** A recipient as payments name it. */
  recipient(): string {
    const { random } = this.#world;
    const fate = random.chance(0.4) ? "settle" : random.pick(FATES);
    // Over midnight only now and then: its rail is asked again and again meanwhile.
    const afterMs = random.chance(LATE_FATES.includes(fate) ? 0.3 : 0.02)
      ? 26 * HOUR
      : random.pick([SECOND, 3 * SECOND, 30 * SECOND, 5 * MINUTE]);
    return recipientOf({ fate, afterMs });
  }

  order(profile: AgentProfile, amountCents: number): void {
    const keyHash = this.#world.nextId("key");
    const order = {
      profile,
      keyHash,
      payloadHash: `payload of ${keyHash}`,
      amountCents,
      recipient: this.recipient(),
      keyId: this.keyOf(profile.agentId),
    };
    this.#orders.push(order);
    if (this.#orders.length > RECENT_KEYS_MAX) this.#orders.shift();
    void this.#place(order);
  }

  /** Sends a key again, now and then with another payload. */
  replay(): void {
    const { random } = this.#world;
    if (this.#orders.length === 0) return;
    const order = random.pick(this.#orders);
    void this.#place(random.chance(0.2) ? { ...order, payloadHash: "another" } : order);
  }

  /** Now and then one that is dead. */
  keyOf(agentId: string): string {
    const { agents, random } = this.#world;
    const own = agents.get(agentId)?.state.access.activeKeyId ?? "akey_dead";
    const known = this.#keys.get(agentId) ?? own;
    if (own !== "akey_dead") this.#keys.set(agentId, own);
    return random.chance(0.95) ? own : known;
  }

  /** A client asks, and asks again under the same key while it has no answer; some give up. */
  async #place(order: Order): Promise<void> {
    const { network, random } = this.#world;
    for (let attempt = 0; attempt < REPEATS_MAX; attempt += 1) {
      const answer = await this.#world.request((process) =>
        process.pay(order.profile, order.keyId, this.#requestOf(order)),
      );
      if (answer !== null) return this.#answered(order, answer);
      if (random.chance(0.2)) return;
      await network.sleep(this.#world.clients, random.between(1, 5 * SECOND));
    }
  }

  #answered({ keyHash, profile }: Order, { request }: Payment): void {
    this.#world.observer.clientAnswered(profile.agentId, keyHash, request.transactionId);
  }

  #requestOf({ amountCents, keyHash, payloadHash, recipient }: Order): PaymentRequest {
    return {
      transactionId: this.#world.nextId("txn"),
      approvalId: this.#world.nextId("apr"),
      keyHash,
      payloadHash,
      rail: "card",
      amountMc: mcOf(amountCents),
      currency: "USD",
      recipient,
      merchantCategory: null,
      purpose: "simulated",
      fingerprint: `${recipient} ${String(amountCents)}`,
      proof: "",
    };
  }
}
