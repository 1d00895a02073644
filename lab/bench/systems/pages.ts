import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { Child } from "../child.ts";
import type { PagesConfig, PageEvents } from "../processes/pages.ts";
import { percentile } from "../statistics.ts";
import { callTo, type PayingAgent, postTo } from "./payments-agents.ts";
import { BUDGET_CENTS, ORDER } from "./system.ts";
import type { Beside } from "./waiting.ts";

/** Pages that are open all the while. */
const PAGES = 500;
/** Maximum streams of a session. */
const OF_A_SESSION = 8;
/** An approval is requested so often. */
const REQUEST_INTERVAL_MS = 1_000;
/** The pages show an approval within so long, at the 95th percentile. */
const SHOWN_MS = 500;
const ANSWER_MS = 10_000;

const paid = z.object({ approval: z.object({ id: z.string() }) });
const created = z.object({ agent: z.object({ id: z.string() }), apiKey: z.string() });
const invited = z.object({ token: z.string() });
const session = z.object({ token: z.string() });

interface Scene {
  readonly port: number;
  readonly token: string;
  readonly teamId: string;
}

/** People of the organization, each with a session. The address is the last word of a proxy that is trusted. */
async function people(port: number, token: string, count: number): Promise<string[]> {
  const tokens: string[] = [];
  for (let number = 0; number < count; number += 1) {
    const email = `person-${String(number)}@example.com`;
    const invite = invited.parse(await postTo(port, "/v1/invites", { email, role: "member" }, token));
    const body = { token: invite.token, name: "Person", password: "Tq7-vexbu-Zk" };
    const from = { "x-forwarded-for": `10.1.0.${String(number)}` };
    tokens.push(session.parse(await callTo(port, "POST", "/v1/invites/accept", body, null, from)).token);
  }
  return tokens;
}

/** Opens the pages, and has an agent ask for approvals one after another for as long as the run takes. */
export async function openPages({ port, teamId, token }: Scene): Promise<Beside> {
  const tokens = await people(port, token, Math.ceil(PAGES / OF_A_SESSION));
  const config: PagesConfig = { port, tokens, pages: PAGES };
  const child = await Child.start({ entry: "processes/pages.ts", config });
  const fields = { name: "Asking", teamId, budgetCents: BUDGET_CENTS, autoApprovalThresholdCents: 0 };
  const { agent, apiKey } = created.parse(await postTo(port, "/v1/agents", fields, token));
  const own: PayingAgent = { id: agent.id, apiKey };
  const approvals: string[] = [];
  const ending = new AbortController();
  const asking = (async () => {
    while (!ending.signal.aborted) {
      const at = String(Date.now());
      const order = { ...ORDER, purpose: `asked/${at}/`, idempotencyKey: `asked-${at}` };
      const { approval } = paid.parse(await postTo(port, "/v1/payments", order, apiKey));
      approvals.push(approval.id);
      await sleep(REQUEST_INTERVAL_MS);
    }
  })();
  return {
    agents: [own],
    get payments() {
      return approvals.length;
    },
    async finish(fresh) {
      ending.abort();
      await asking;
      await sleep(REQUEST_INTERVAL_MS);
      const seen = await child.request<PageEvents>(null, ANSWER_MS);
      for (const id of approvals) await callTo(port, "POST", `/v1/approvals/${id}/approve`, undefined, fresh);
      await child.stop();
      return judged(seen, approvals.length);
    },
  };
}

/** Returns the events that pages showed too late or not at all. */
function judged({ approvalsMs, bytes, open }: PageEvents, asked: number): string[] {
  const sorted = approvalsMs.toSorted((a, b) => a - b);
  const [p50, p95] = [percentile(sorted, 0.5), percentile(sorted, 0.95)];
  process.stderr.write(
    `${String(open)} pages, ${String(Math.round(bytes / 2 ** 20))} MiB; ${String(asked)} approvals shown after ` +
      `${String(Math.round(p50))} ms (p50), ${String(Math.round(p95))} ms (p95)\n`,
  );
  return [
    ...(open === PAGES ? [] : [`${String(PAGES - open)} pages lost their streams`]),
    ...(approvalsMs.length === PAGES * asked ? [] : [`not every page has shown every approval once`]),
    ...(p95 <= SHOWN_MS ? [] : [`approvals were shown after ${String(Math.round(p95))} ms (p95)`]),
  ];
}
