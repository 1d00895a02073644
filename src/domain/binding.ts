/** Projects or teams that a caller may act in. */
export interface Bound {
  readonly type: "project" | "team";
  readonly ids: readonly string[];
}

/** The part of its organization that a caller may act in. */
export type Binding = { readonly type: "organization" } | Bound;

/** Project and team of a record. A project belongs to itself and to no team. */
export interface ContainerRef {
  readonly projectId: string;
  readonly teamId: string | null;
}

export function covers(binding: Binding, container: ContainerRef): boolean {
  if (binding.type === "organization") return true;
  const id = binding.type === "project" ? container.projectId : container.teamId;
  return id !== null && binding.ids.includes(id);
}

/** Filter of a list of records that have a project and a team. */
export interface BindingFilter {
  readonly projectId?: readonly string[];
  readonly teamId?: readonly string[];
}

/** The part of its organization that a list may show, for each kind of record. */
export interface Reach {
  /** Filter for teams, agents, payments and approvals. */
  readonly bindingFilter: BindingFilter;
  /** Projects to list; null for all. */
  readonly projects: readonly string[] | null;
}

/** Returns a binding's reach. A caller that is bound to teams lists no projects, not even those of the teams. */
export function reachOf(binding: Binding): Reach {
  switch (binding.type) {
    case "organization":
      return { bindingFilter: {}, projects: null };
    case "project":
      return { bindingFilter: { projectId: binding.ids }, projects: binding.ids };
    case "team":
      return { bindingFilter: { teamId: binding.ids }, projects: [] };
  }
}
