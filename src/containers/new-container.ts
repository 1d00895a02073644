import type { ContainerDocument } from "../store/documents.ts";
import type { Logos } from "./logos.ts";

/** Body of a create of a project or a team; as a tool without color and logo. */
export interface NewContainer {
  readonly name: string;
  readonly description?: string | null | undefined;
  readonly color?: string | null | undefined;
  readonly logo?: string | null | undefined;
  readonly idempotencyKey?: string | undefined;
}

/** Returns the payload that a replay must repeat; an explicit default equals a missing field. */
export const payloadOf = ({ color, description, logo, name }: NewContainer) => ({
  name,
  description: description ?? null,
  color: color ?? null,
  logo: logo ?? null,
});

export const createdOf = ({ description, name }: ContainerDocument) => ({ name, description });

/** A container's record without its proof, which needs the place. */
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

/**
 * Returns a new container's record without its proof. Stores the logo first, so that no record names a missing image.
 */
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
