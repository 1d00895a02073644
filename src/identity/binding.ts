import type { Binding } from "../domain/binding.ts";
import { refusal, type Refusal } from "../domain/errors.ts";
import type { Collections } from "../store/collections.ts";
import type { KeyBinding, ManagementPrincipal } from "./principals.ts";

/** Returns the part of the organization in which a member or an organization's key may act. */
export function bindingOf(principal: ManagementPrincipal): Binding {
  const { binding } = principal;
  return "id" in binding ? { type: binding.type, ids: [binding.id] } : binding;
}

/** Refuses a binding to an archived or foreign container: a caller that can do nothing is a mistake. */
export async function bindingRefusal(
  { projects, teams }: Pick<Collections, "projects" | "teams">,
  organizationId: string,
  binding: Binding | KeyBinding,
): Promise<Refusal | null> {
  if (binding.type === "organization") return null;
  const ids = "id" in binding ? [binding.id] : [...binding.ids];
  const own = { _id: { $in: ids }, organizationId };
  const found =
    binding.type === "project" ? await projects.find(own).toArray() : await teams.find(own).toArray();
  if (found.length < new Set(ids).size) return refusal("NOT_FOUND");
  return found.every(({ archivedAt }) => archivedAt === null) ? null : refusal("CONTAINER_ARCHIVED");
}
