import { z } from "zod";
import { BUDGET_CENTS } from "./system.ts";

export interface PayingAgent {
  readonly id: string;
  readonly apiKey: string;
}

export interface CreateAgents {
  readonly port: number;
  readonly owner: { readonly email: string; readonly password: string };
  readonly teamId: string;
  readonly count: number;
}

const session = z.object({ token: z.string() });
const created = z.object({ agent: z.object({ id: z.string() }), apiKey: z.string() });

/** The body of a 2xx; throws for anything else. */
export async function postTo(
  port: number,
  path: string,
  body: unknown,
  token: string | null,
): Promise<unknown> {
  const response = await fetch(`http://127.0.0.1:${String(port)}${path}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${path}: ${String(response.status)} ${await response.text()}`);
  return response.json();
}

/** Agents that may pay as much as they like without a person, made over REST by the owner. */
export async function createAgents({
  port,
  owner,
  teamId,
  count,
}: CreateAgents): Promise<{ readonly agents: readonly PayingAgent[]; readonly token: string }> {
  const { token } = session.parse(await postTo(port, "/v1/auth/sign-in", owner, null));
  const agents: PayingAgent[] = [];
  for (let number = 1; number <= count; number += 1) {
    const body = {
      name: `Agent ${String(number)}`,
      teamId,
      budgetCents: BUDGET_CENTS,
      autoApprovalThresholdCents: null,
    };
    const { agent, apiKey } = created.parse(await postTo(port, "/v1/agents", body, token));
    agents.push({ id: agent.id, apiKey });
  }
  return { agents, token };
}
