import type { ContainerDocument } from "../store/documents.ts";
import type { Logos } from "./logos.ts";

/** The body of a create of a project or a team, by REST or, without the looks, as a tool. */
export interface NewContainer {
  readonly name: string;
  readonly description?: string | null | undefined;
  readonly color?: string | null | undefined;
  readonly logo?: string | null | undefined;
  readonly idempotencyKey?: string | undefined;
}

/** Payload that a replay must repeat; an explicit default equals a missing one. */
export const payloadOf = ({ color, description, logo, name }: NewContainer) => ({
  name,
  description: description ?? null,
  color: color ?? null,
  logo: logo ?? null,
});

/** Fields of a new container in the audit log. */
export const createdOf = ({ description, name }: ContainerDocument) => ({ name, description });

/** A container's record that has no proof yet, since its place is not known here. */
type UnprovenContainer = Pick<
  ContainerDocument,
  | "_id"
  | "organizationId"
  | "name"
  | "description"
  | "color"
  | "logoHash"
  | "createdAt"
  | "archivedAt"
  | "state"
>;

/** A new container's record without its proof. Its logo is kept first: a record never names an image that is not there. */
export async function newContainer(
  id: string,
  organizationId: string,
  body: NewContainer,
  { logos, clock }: { readonly logos: Logos; readonly clock: () => Date },
): Promise<UnprovenContainer> {
  return {
    _id: id,
    organizationId,
    name: body.name,
    description: body.description ?? null,
    color: body.color ?? null,
    logoHash: typeof body.logo === "string" ? await logos.keep(organizationId, body.logo) : null,
    createdAt: clock(),
    archivedAt: null,
    state: "active",
  };
}
