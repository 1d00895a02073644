import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { Random } from "../../../lab/random.ts";
import { type Answer, type Api, REPEAT_AFTER_MS } from "../../support/api.ts";
import { until } from "../../support/process.ts";

/** An agent of the load. */
interface LoadAgent {
  readonly id: string;
  readonly apiKey: string;
}

/** Budget and threshold that the amounts below are made for. */
export const LOAD_POLICY = { budgetCents: 1_000_000, autoApprovalThresholdCents: 1_000 } as const;
const APPROVED_CENTS = 100;
const HELD_CENTS = 1_100;
const DENIED_CENTS = 2_000_000;

/** What clients do, and how many events come of it. */
const STEPS = {
  approved: 1,
  denied: 1,
  heldAndApproved: 3,
  heldAndDenied: 3,
  pausedAndResumed: 2,
} as const;
type Step = keyof typeof STEPS;
/** Each as often as it stands here. */
const CHOICE: readonly Step[] = [
  "approved",
  "approved",
  "denied",
  "heldAndApproved",
  "heldAndDenied",
  "pausedAndResumed",
  "pausedAndResumed",
];

/** A machine that has killed what answers may need as much. */
const ANSWERED_MS = 120_000;
const paid = z.object({
  transaction: z.object({ id: z.string() }),
  approval: z.object({ id: z.string() }).nullable(),
});

export interface WebhookLoadOptions {
  readonly agents: readonly LoadAgent[];
  readonly api: () => Promise<Api>;
  /** The owner's session. */
  readonly token: string;
  readonly random: Random;
  /** It ends when as many have come of it. */
  readonly events: number;
}

/** One client for each agent, which does one thing after another, each until it is answered, whichever process is killed meanwhile. */
export class WebhookLoad {
  readonly #options: WebhookLoadOptions;
  readonly #clients: Promise<void>;
  readonly #waiting = new Set<() => void>();
  #begun = 0;
  #made = 0;
  #number = 0;

  constructor(options: WebhookLoadOptions) {
    this.#options = options;
    const clients = options.agents.map((agent, index) =>
      this.#run(agent, options.random.fork(String(index))),
    );
    this.#clients = Promise.all(clients).then(() => undefined);
    // What went wrong is told by `end`.
    this.#clients.catch(() => undefined);
  }

  /** As soon as so many events have come of it; fails when a client fails before. */
  async untilMade(events: number): Promise<void> {
    const made = new Promise<void>((resolve) => {
      const look = (): void => {
        if (this.#made < events) return;
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
      look();
    });
    await Promise.race([made, this.#clients]);
  }

  /** When everything was done; how many events came of it. */
  async end(): Promise<number> {
    await this.#clients;
    return this.#made;
  }

  async #run(agent: LoadAgent, random: Random): Promise<void> {
    while (this.#begun < this.#options.events) {
      const step = random.pick(CHOICE);
      this.#begun += STEPS[step];
      await this.#do(step, agent);
      this.#made += STEPS[step];
      for (const look of this.#waiting) look();
    }
  }

  async #do(step: Step, { apiKey, id }: LoadAgent): Promise<void> {
    switch (step) {
      case "approved":
        return void (await this.#pay(apiKey, APPROVED_CENTS));
      case "denied":
        return void (await this.#pay(apiKey, DENIED_CENTS));
      case "heldAndApproved":
        return this.#resolve(await this.#hold(apiKey), "approve");
      case "heldAndDenied":
        return this.#resolve(await this.#hold(apiKey), "deny", { feedback: "Too dear" });
      case "pausedAndResumed":
        await this.#asOwner(`/v1/agents/${id}/pause`);
        return void (await this.#asOwner(`/v1/agents/${id}/resume`));
    }
  }

  async #pay(apiKey: string, amountCents: number) {
    this.#number += 1;
    const fields = { idempotencyKey: `load ${String(this.#number)}`, amountCents };
    const { body } = await this.#answered("a payment", (api) => api.payRaw(apiKey, fields), [200, 201]);
    return paid.parse(body);
  }

  async #hold(apiKey: string): Promise<string> {
    const { approval, transaction } = await this.#pay(apiKey, HELD_CENTS);
    if (approval !== null) return approval.id;
    return until(`${transaction.id} is on hold`, ANSWERED_MS, async () => {
      const known = await (await this.#options.api()).payment(apiKey, transaction.id);
      return known.approval?.id ?? null;
    });
  }

  /** 409: it was resolved by a request whose answer was lost. */
  async #resolve(approvalId: string, how: "approve" | "deny", body?: object): Promise<void> {
    await this.#asOwner(`/v1/approvals/${approvalId}/${how}`, body, [200, 409]);
  }

  #asOwner(path: string, body?: object, fine: readonly number[] = [200]): Promise<Answer> {
    const { token } = this.#options;
    return this.#answered(path, (api) => api.call("POST", path, { token, body }), fine);
  }

  /** Asks until there is an answer: of the server that there is then, and again after a while where it says to. */
  async #answered(
    what: string,
    ask: (api: Api) => Promise<Answer>,
    fine: readonly number[],
  ): Promise<Answer> {
    const deadline = Date.now() + ANSWERED_MS;
    for (;;) {
      const answer = await ask(await this.#options.api()).catch(() => null);
      if (answer !== null && fine.includes(answer.status)) return answer;
      const said = answer === null ? "nothing" : `${String(answer.status)} ${JSON.stringify(answer.body)}`;
      // 404: an approval that was answered, and that the killed server has left to its actor to write down.
      const isForNow = answer === null || answer.status === 503 || answer.status === 404;
      if (!isForNow || Date.now() > deadline) throw new Error(`${what} was answered ${said}`);
      await sleep(REPEAT_AFTER_MS);
    }
  }
}
