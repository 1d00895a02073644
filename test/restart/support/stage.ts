import { join } from "node:path";
import type { RuntimeFile } from "../../../src/engines/runtime-file.ts";
import { onceReachable } from "../../support/api.ts";
import { ServiceProcess, type ServiceProcessOptions } from "../../support/process.ts";
import { pay, type Sent } from "./load.ts";
import {
  arm,
  armBudget,
  budgetHeldLine,
  type BudgetPoint,
  disarm,
  heldPattern,
  type Point,
  POINTS_FOLDER,
} from "./points.ts";
import { type Place, Tenant } from "./tenant.ts";

const HELD_MS = 120_000;

/** A service in which payments can be held at points, with one organization on it. */
export class Stage {
  readonly service: ServiceProcess;
  readonly tenant: Tenant;
  readonly #points: string;

  private constructor(service: ServiceProcess, tenant: Tenant, points: string) {
    this.service = service;
    this.tenant = tenant;
    this.#points = points;
  }

  static async set(options: Omit<ServiceProcessOptions, "entry"> = {}): Promise<Stage> {
    const service = await ServiceProcess.create({ entry: "test/restart/crashing-main.ts", ...options });
    try {
      const points = join(service.dataDir, "points");
      const runtime = await service.start({ [POINTS_FOLDER]: points });
      return new Stage(service, await Tenant.create(placeOf(service, runtime)), points);
    } catch (error) {
      await service.dispose();
      throw error;
    }
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

  /** Starts the service again on the same folder, with nothing left to be held. */
  async restart(env: NodeJS.ProcessEnv = {}): Promise<void> {
    await this.disarm();
    await this.meet(await this.service.start({ [POINTS_FOLDER]: this.#points, ...env }));
  }

  /** Turns to the service where it is now. */
  meet(runtime: RuntimeFile): Promise<void> {
    return this.tenant.meet(placeOf(this.service, runtime));
  }

  /** Waits until a payment stands at the point; answers its transaction's id. */
  async heldAt(point: Point): Promise<string> {
    const [, transactionId = ""] = await this.service.child.printed(heldPattern(point), HELD_MS);
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

const placeOf = (service: ServiceProcess, { baseUrl, mongodb }: RuntimeFile): Place => ({
  baseUrl,
  mongodbUri: mongodb.uri,
  env: service.env,
});
