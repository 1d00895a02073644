import { z } from "zod";
import { callTo, postTo } from "./payments-agents.ts";
import { BUDGET_CENTS } from "./system.ts";

/** Teams that the agents under caps are in. */
export const CAPPED_TEAMS = 5;

const TRIES_MAX = 5;

const created = z.object({ team: z.object({ id: z.string() }) });
const usage = z.object({ spentCents: z.number(), reservedCents: z.number() });
const projectBudget = z.object({
  capCents: z.number().nullable(),
  version: z.number(),
  teams: z.array(z.object({ teamId: z.string(), capCents: z.number().nullable() })),
  usage,
});

interface PaidIn {
  readonly projectId: string;
  readonly teamIds: readonly string[];
}

export async function createTeam(
  port: number,
  token: string,
  projectId: string,
  name: string,
): Promise<string> {
  return created.parse(await postTo(port, "/v1/teams", { projectId, name }, token)).team.id;
}

/** A cap over the project and over each of its teams, which no run reaches. */
export async function setCaps(port: number, token: string, { projectId, teamIds }: PaidIn): Promise<void> {
  const path = `/v1/projects/${projectId}/budget`;
  const teams = teamIds.map((teamId) => ({ teamId, capCents: BUDGET_CENTS }));
  // On a busy machine it may be answered before all agents have it, with 503: then it is decided, or it is not.
  for (let tries = 1; ; tries += 1) {
    const { capCents, version } = projectBudget.parse(await callTo(port, "GET", path, undefined, token));
    if (capCents !== null) return;
    try {
      await callTo(port, "PUT", path, { version, capCents: BUDGET_CENTS, teams }, token);
      return;
    } catch (error) {
      if (tries >= TRIES_MAX) throw error;
    }
  }
}

const sum = (used: readonly z.infer<typeof usage>[]): number =>
  used.reduce((total, each) => total + each.spentCents + each.reservedCents, 0);

/** Returns differences between the use that project and teams show and the payments. */
export async function differingUse(
  spentCents: number,
  port: number,
  token: string,
  { projectId, teamIds }: PaidIn,
): Promise<readonly string[]> {
  const read = async (path: string) =>
    z.object({ usage }).parse(await callTo(port, "GET", `${path}/budget`, undefined, token)).usage;
  const project = await read(`/v1/projects/${projectId}`);
  const teams = await Promise.all(teamIds.map((id) => read(`/v1/teams/${id}`)));
  return [["project", sum([project])] as const, ["teams", sum(teams)] as const]
    .filter(([, used]) => used !== spentCents)
    .map(([name, used]) => `caps: ${String(used)} cents used by the ${name}, ${String(spentCents)} paid`);
}
