import { onceReachable } from "../../support/api.ts";
import type { ServiceProcess } from "../../support/process.ts";
import { type CrashingOptions, placeOf, pointsOf, startCrashing } from "./crashing.ts";
import { pay, type Sent } from "./load.ts";
import {
  arm,
  armBudget,
  budgetHeldLine,
  type BudgetPoint,
  disarm,
  heldPattern,
  type Point,
} from "./points.ts";
import { Tenant } from "./tenant.ts";

const HELD_MS = 120_000;

/** Payments that were waited for at points: several stages may use one service, and the same points. */
const met = new Set<string>();

/** A service in which payments can be held at points, with one organization on it. */
export class Stage {
  readonly service: ServiceProcess;
  readonly tenant: Tenant;
  readonly #points: string;

  private constructor(service: ServiceProcess, tenant: Tenant) {
    this.service = service;
    this.tenant = tenant;
    this.#points = pointsOf(service);
  }

  static async set(options: CrashingOptions = {}): Promise<Stage> {
    const service = await startCrashing(options);
    try {
      return await Stage.on(service);
    } catch (error) {
      await service.dispose();
      throw error;
    }
  }

  /** With an organization of its own on a service that others use, too. */
  static async on(service: ServiceProcess): Promise<Stage> {
    return new Stage(service, await Tenant.create(placeOf(service)));
  }

  arm(...points: readonly Point[]): Promise<void> {
    return arm(this.#points, ...points);
  }

  /** Replaces a budget of a project and waits until that is held at the point: its request is still unanswered. */
  async holdBudget(point: BudgetPoint, projectId: string, replace: () => Promise<unknown>): Promise<void> {
    await armBudget(this.#points, point, projectId);
    void replace().catch(() => null);
    const line = budgetHeldLine(point, projectId);
    const isHeld = () => (this.service.child.stdout.includes(line) ? true : null);
    await this.service.child.until(line, HELD_MS, isHeld);
  }

  /** Lets go of everything that is held. */
  disarm(): Promise<void> {
    return disarm(this.#points);
  }

  /** Turns to the service where it is now. */
  meet(): Promise<void> {
    return this.tenant.meet(placeOf(this.service));
  }

  /** Waits until one more payment stands at the point; answers its transaction's id. */
  async heldAt(point: Point): Promise<string> {
    const { child } = this.service;
    const transactionId = await child.until(`a payment at ${point}`, HELD_MS, () => {
      const ids = [...child.stdout.matchAll(heldPattern(point))].map(([, id = ""]) => id);
      return ids.find((id) => !met.has(id)) ?? null;
    });
    met.add(transactionId);
    return transactionId;
  }

  /** Pays at a point and waits until the payment stands there: its request is still unanswered. */
  async payAndHold(apiKey: string, point: Point, amountCents: number): Promise<Held> {
    const answer = pay(this.tenant.api, apiKey, `key ${point}`, amountCents, point);
    const transactionId = await Promise.race([this.heldAt(point), answer.then(() => null)]);
    if (transactionId === null) throw new Error(`the payment to ${point} was not held`);
    return { transactionId, answer };
  }

  /** The client of `payAndHold` tries again under the same key. */
  payAgain(apiKey: string, point: Point, amountCents: number): Promise<Sent> {
    return onceReachable(() => pay(this.tenant.api, apiKey, `key ${point}`, amountCents, point));
  }
}

export interface Held {
  readonly transactionId: string;
  readonly answer: Promise<Sent>;
}
