import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { Item } from "../../src/client/types.ts";
import { api } from "./api.ts";

export type Project = Item<"listProjects">;
export type Team = Item<"listTeams">;

/** Maximum number offered in a picker; an organization with more finds them by their projects. */
const SHOWN_MAX = 1_000;
const PAGE = 200;

/** Options that a menu draws at once; typing finds the others. */
export const OPTIONS_MAX = 50;

/** The first thousand records of a list. */
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

/** Names of projects and teams by their ids; a text of no length while they are not known. */
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
