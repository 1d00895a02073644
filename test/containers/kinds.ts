import type { OperationId } from "../../src/contract/registry.ts";
import type { Fields, World } from "../support/world.ts";

export interface Container {
  readonly id: string;
  readonly name: string;
  readonly description: string | null;
  readonly color: string | null;
  readonly logo: string | null;
  readonly createdAt: string;
  readonly archivedAt: string | null;
}

export type Query = Readonly<Record<string, string>>;

interface Page {
  readonly items: readonly Container[];
  readonly nextCursor: string | null;
}

/** The same operations of the two kinds of container, with what tells their answers apart taken off. */
export interface Kind {
  readonly noun: "project" | "team";
  readonly create: (world: World, fields?: Fields) => Promise<Container>;
  readonly update: (world: World, id: string, body: Fields) => Promise<Container>;
  readonly read: (world: World, id: string) => Promise<Container>;
  readonly page: (world: World, query: Query) => Promise<Page>;
  readonly archive: (world: World, id: string) => Promise<Container>;
  readonly names: Readonly<Record<"create" | "update" | "read" | "list" | "archive", OperationId>>;
}

export const projects: Kind = {
  noun: "project",
  create: async ({ api, token }, fields) =>
    (await api.ok("createProject", 201, { token, body: { name: "P", ...fields } })).project,
  update: async ({ api, token }, id, body) =>
    (await api.ok("updateProject", 200, { token, id, body })).project,
  read: async ({ api, token }, id) => (await api.ok("getProject", 200, { token, id })).project,
  page: async ({ api, token }, query) => {
    const { projects: items, nextCursor } = await api.ok("listProjects", 200, { token, query });
    return { items, nextCursor };
  },
  archive: async ({ api, token }, id) => (await api.ok("archiveProject", 200, { token, id })).project,
  names: {
    create: "createProject",
    update: "updateProject",
    read: "getProject",
    list: "listProjects",
    archive: "archiveProject",
  },
};

export const teams: Kind = {
  noun: "team",
  create: async ({ api, token }, fields) =>
    (await api.ok("createTeam", 201, { token, body: { name: "T", ...fields } })).team,
  update: async ({ api, token }, id, body) => (await api.ok("updateTeam", 200, { token, id, body })).team,
  read: async ({ api, token }, id) => (await api.ok("getTeam", 200, { token, id })).team,
  page: async ({ api, token }, query) => {
    const { teams: items, nextCursor } = await api.ok("listTeams", 200, { token, query });
    return { items, nextCursor };
  },
  archive: async ({ api, token }, id) => (await api.ok("archiveTeam", 200, { token, id })).team,
  names: {
    create: "createTeam",
    update: "updateTeam",
    read: "getTeam",
    list: "listTeams",
    archive: "archiveTeam",
  },
};
