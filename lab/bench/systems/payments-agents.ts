import { z } from "zod";
import { BUDGET_CENTS } from "./system.ts";

export interface PayingAgent {
  readonly id: string;
  readonly apiKey: string;
}

export interface CreateAgents {
  readonly port: number;
  readonly owner: { readonly email: string; readonly password: string };
  /** In turn, so that a client that goes round the agents goes round the teams. */
  readonly teamIds: readonly string[];
  readonly count: number;
}

const session = z.object({ token: z.string() });
const created = z.object({ agent: z.object({ id: z.string() }), apiKey: z.string() });

/** The body of a 2xx; throws for anything else. */
export const postTo = (port: number, path: string, body: unknown, token: string | null): Promise<unknown> =>
  callTo(port, "POST", path, body, token);

/** Sends a request by any method; an undefined `body` sends none. */
export async function callTo(
  port: number,
  method: "GET" | "POST" | "PUT",
  path: string,
  body: unknown,
  token: string | null,
  more: Readonly<Record<string, string>> = {},
): Promise<unknown> {
  const response = await fetch(`http://127.0.0.1:${String(port)}${path}`, {
    method,
    headers: {
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...more,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${path}: ${String(response.status)} ${await response.text()}`);
  return response.json();
}

/** A session of the owner's; it lasts for some minutes only. */
export const signIn = async (port: number, owner: CreateAgents["owner"]): Promise<string> =>
  session.parse(await postTo(port, "/v1/auth/sign-in", owner, null)).token;

/** Agents that may pay as much as they like without a person, made over REST by the owner. */
export async function createAgents({
  port,
  owner,
  teamIds,
  count,
}: CreateAgents): Promise<{ readonly agents: readonly PayingAgent[]; readonly token: string }> {
  const token = await signIn(port, owner);
  const agents: PayingAgent[] = [];
  for (let number = 1; number <= count; number += 1) {
    const body = {
      name: `Agent ${String(number)}`,
      teamId: teamIds[number % teamIds.length],
      budgetCents: BUDGET_CENTS,
      autoApprovalThresholdCents: null,
    };
    const { agent, apiKey } = created.parse(await postTo(port, "/v1/agents", body, token));
    agents.push({ id: agent.id, apiKey });
  }
  return { agents, token };
}
