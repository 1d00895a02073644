import type { Binding, ManagementPrincipal } from "./principals.ts";

/** The project and team that a record belongs to. A project belongs to itself and to no team. */
export interface ContainerRef {
  readonly projectId: string;
  readonly teamId: string | null;
}

const WHOLE_ORGANIZATION: Binding = { type: "organization" };

/** People act in their whole organization; an organization's key inside its binding. */
export const bindingOf = (principal: ManagementPrincipal): Binding =>
  principal.type === "session" ? WHOLE_ORGANIZATION : principal.binding;

export function covers(binding: Binding, container: ContainerRef): boolean {
  if (binding.type === "organization") return true;
  return (binding.type === "project" ? container.projectId : container.teamId) === binding.id;
}

/** Filter of a list of records that name their project and team. */
export interface BindingFilter {
  readonly projectId?: string;
  readonly teamId?: string;
}

/** Part of its organization that a list may show, for records of each kind. */
export interface Reach {
  /** Teams, and agents, payments, approvals: they name their project, and their team. */
  readonly bindingFilter: BindingFilter;
  readonly projects: { readonly _id?: string } | "none";
}

/** A key that is bound to a team lists no projects, its own included. */
export function reachOf(binding: Binding): Reach {
  switch (binding.type) {
    case "organization":
      return { bindingFilter: {}, projects: {} };
    case "project":
      return { bindingFilter: { projectId: binding.id }, projects: { _id: binding.id } };
    case "team":
      return { bindingFilter: { teamId: binding.id }, projects: "none" };
  }
}
