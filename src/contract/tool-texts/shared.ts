/** Texts shared by both toolsets. */

export const PAGING = {
  limit: "The maximum number of results.",
  cursor: "nextCursor of the previous page, with the same filters; left out: the first page.",
} as const;

/** Result fields of every page, besides its records. */
export const PAGED = { nextCursor: "null: no further page" } as const;

export const STATUSES =
  "`pending`: on hold or on its way; `approved`: paid; `reversed`: paid, and all of it returned later; `denied`, " +
  "`failed`, `expired`: not paid.";

export const IDS = {
  agent: "The agent's id; list_agents has it.",
  project: "The project's id; list_projects has it.",
  team: "The team's id; list_teams has it.",
} as const;
