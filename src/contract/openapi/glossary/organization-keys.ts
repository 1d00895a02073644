import { note, type Note } from "./notes.ts";

export const organizationKeyNotes: Readonly<Record<string, Note>> = {
  binding: note("The part of the organization that its holder may act in."),
  "binding.type": note("Whether that is the whole organization, or some projects or teams of it."),
  "mintOrganizationKey.scopes": note("What the key may do: the operations that name one of these scopes."),
  "OrganizationKey.scopes": note("What the key may do: the operations that name one of these scopes."),
  dailyCreateLimit: note("Agents, projects and teams that it may create in a UTC day.", 100),
  createdToday: note("How many it has created today.", 3),
  rotatedAt: note("When its value was replaced; null: never.", null),
  revokedAt: note("When it was revoked; null: it is not revoked.", null),
  "mintOrganizationKey.key": note("The key's value, shown only once.", `svc_org_live_${"0".repeat(40)}`),
  "rotateOrganizationKey.key": note(
    "The key's new value, shown only once.",
    `svc_org_live_${"0".repeat(40)}`,
  ),
};
