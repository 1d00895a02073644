import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { Item } from "../../src/client/types.ts";
import { api } from "./api.ts";

export type Project = Item<"listProjects">;
export type Team = Item<"listTeams">;

/** Maximum options offered in a picker. Beyond that, teams are found through their projects. */
const SHOWN_MAX = 1_000;
const PAGE = 200;

/** Maximum options drawn in a menu. Typing finds others. */
export const OPTIONS_MAX = 50;

/** Returns the first thousand records of a list. */
export async function firstOf<T>(records: AsyncGenerator<T, void, undefined>): Promise<readonly T[]> {
  const found: T[] = [];
  for await (const record of records) {
    found.push(record);
    if (found.length === SHOWN_MAX) break;
  }
  return found;
}

export const useProjects = () =>
  useQuery({
    queryKey: ["projects", "all"],
    queryFn: ({ signal }) => firstOf(api.each("listProjects", { query: { limit: PAGE } }, { signal })),
    staleTime: 30_000,
  });

export const useTeams = () =>
  useQuery({
    queryKey: ["teams", "all"],
    queryFn: ({ signal }) => firstOf(api.each("listTeams", { query: { limit: PAGE } }, { signal })),
    staleTime: 30_000,
  });

/** Returns names of projects and teams by id; empty while unknown. */
export function useNames(): {
  readonly team: (id: string) => string;
  readonly project: (id: string) => string;
} {
  const { data: teams } = useTeams();
  const { data: projects } = useProjects();
  return useMemo(() => ({ team: nameIn(teams), project: nameIn(projects) }), [teams, projects]);
}

function nameIn(containers: readonly (Project | Team)[] = []): (id: string) => string {
  const names = new Map(containers.map(({ id, name }) => [id, name]));
  return (id) => names.get(id) ?? "";
}
