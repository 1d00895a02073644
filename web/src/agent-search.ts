const STATES = ["active", "paused", "archived"] as const;

export interface AgentSearch {
  readonly state?: (typeof STATES)[number];
  readonly teamId?: string;
  /** Whether the form for a new agent is open. */
  readonly create?: true;
}

export function agentSearchIn(search: Readonly<Record<string, unknown>>): AgentSearch {
  const state = STATES.find((each) => each === search["state"]);
  const teamId = search["teamId"];
  return {
    ...(state === undefined ? {} : { state }),
    ...(typeof teamId === "string" ? { teamId } : {}),
    ...(search["create"] === true ? { create: true } : {}),
  };
}
