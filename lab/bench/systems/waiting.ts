import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { callTo, type PayingAgent, postTo } from "./payments-agents.ts";
import { BUDGET_CENTS, ORDER } from "./system.ts";

/** Calls that wait at any moment of the run, for so many payments on hold, of agents of which each has its share of such calls. */
const CALLS = 1_000;
const HELD_PAYMENTS = 100;
const AGENTS = 10;
/** Maximum wait of a call. The first ones wait less, so that they do not all come again at the same moment. */
const WAIT_SECONDS = 45;
const FIRST_WAIT_SECONDS = 5;
const AGAIN_MS = 1_000;
/** The first ones come by and by, as they do later. */
const CALLS_AT_ONCE = 10;
const BETWEEN_MS = 250;

const paid = z.object({
  transaction: z.object({ id: z.string(), status: z.string() }),
  approval: z.object({ id: z.string() }).nullable(),
});

const created = z.object({ agent: z.object({ id: z.string() }), apiKey: z.string() });

interface Scene {
  readonly port: number;
  readonly token: string;
  readonly teamId: string;
}

/** Work beside the payments of the bench: payments of agents that wait for a person. */
export interface Beside {
  readonly agents: readonly PayingAgent[];
  readonly payments: number;
  /** Ends it, with every payment approved; what was not as it should be. */
  finish(token: string): Promise<readonly string[]>;
}

/** Has agents' payments held, and calls wait for them, until they are approved. Done once all of them wait. */
export async function startWaiting({ port, teamId, token }: Scene): Promise<Beside> {
  const fields = { name: "Held", teamId, budgetCents: BUDGET_CENTS, autoApprovalThresholdCents: 0 };
  const agents: PayingAgent[] = [];
  const held: (z.output<typeof paid> & { readonly apiKey: string })[] = [];
  while (agents.length < AGENTS) {
    const { agent, apiKey } = created.parse(await postTo(port, "/v1/agents", fields, token));
    agents.push({ id: agent.id, apiKey });
    for (let count = 0; count < HELD_PAYMENTS / AGENTS; count += 1) {
      const order = { ...ORDER, idempotencyKey: `held-${String(count)}` };
      held.push({ ...paid.parse(await postTo(port, "/v1/payments", order, apiKey)), apiKey });
    }
  }
  const calls: Promise<void>[] = [];
  for (let index = 0; index < CALLS; index += 1) {
    const { apiKey = "", transaction } = held[index % held.length] ?? {};
    const spread = Math.round((index / CALLS) * (WAIT_SECONDS - FIRST_WAIT_SECONDS));
    calls.push(waitFor(port, apiKey, transaction?.id ?? "", FIRST_WAIT_SECONDS + spread));
    if (index % CALLS_AT_ONCE === 0) await sleep(BETWEEN_MS);
  }
  return {
    agents,
    payments: held.length,
    async finish(own) {
      for (const { approval } of held) {
        await callTo(port, "POST", `/v1/approvals/${approval?.id ?? ""}/approve`, undefined, own);
      }
      await Promise.all(calls);
      return [];
    },
  };
}

/** Waits call after call, until it is decided. */
async function waitFor(port: number, key: string, id: string, firstSeconds: number): Promise<void> {
  for (let waitSeconds = firstSeconds; ; waitSeconds = WAIT_SECONDS) {
    try {
      const path = `/v1/payments/${id}?waitSeconds=${String(waitSeconds)}`;
      const { transaction } = paid.parse(await callTo(port, "GET", path, undefined, key));
      if (transaction.status !== "pending") return;
    } catch {
      // The service is on its way to its end, or has too much to do for the moment.
      await sleep(AGAIN_MS, undefined, { ref: false });
    }
  }
}
