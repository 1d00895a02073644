import type { HttpBinding, Operation } from "../contract/types.ts";
import type { AuditRecord } from "../domain/audit/entry.ts";

/** Nouns of collections; others are the collection's name without the plural's s. */
const NOUNS: Readonly<Record<string, string>> = {
  auth: "user",
  members: "user",
  setup: "organization",
  treasury: "organization",
  billing: "organization",
  connections: "organization",
  "organization-keys": "organization_key",
  webhooks: "webhook_endpoint",
};

/** Pattern of ids, which are short. A longer text in a path is something else, such as a key in the wrong place. */
const ID = /^[\w-]{1,40}$/;

export interface Named {
  /**
   * Schema of the path's parameters. A value that does not match may be anything, such as a code, and is not recorded.
   */
  readonly schema: Operation["params"];
  readonly params: unknown;
  /** Body of a success; null for a refusal. */
  readonly answered: unknown;
  readonly organizationId: string;
  readonly userId: string | null;
}

/**
 * Returns the resource of an operation from its route: `/v1/agents/:id/key` is about an agent, identified by the path
 * or else by the response.
 */
export function resourceOf(path: HttpBinding["path"] | null, named: Named): AuditRecord["resource"] {
  const [, collection = "", member = ""] = (path ?? "")
    .split("/")
    .filter((part) => part !== "sandbox" && part !== "");
  const type = nounOf(collection, member, path ?? "");
  if (!("id" in named.schema.shape)) return { type, id: idOf(type, named) };
  const params = named.schema.safeParse(named.params);
  return { type, id: params.success ? idIn(params.data) : null };
}

function nounOf(collection: string, member: string, path: string): string {
  // A passkey's own routes name the passkey; all others under `auth` are about the user who signs in.
  if (collection === "auth" && path.includes("/:id")) return singular(member);
  return NOUNS[collection] ?? singular(collection);
}

const singular = (plural: string): string => plural.replace(/s$/, "").replaceAll("-", "_");

function idOf(type: string, { answered, organizationId, userId }: Named): string | null {
  if (type === "organization") return organizationId;
  if (type === "user") return userId ?? recordId(answered);
  return recordId(answered);
}

/** Returns the id of the first record in a response, such as `{ agent: { id } }`. */
function recordId(answered: unknown): string | null {
  if (typeof answered !== "object" || answered === null) return null;
  for (const value of Object.values(answered)) {
    const id = idIn(value);
    if (id !== null) return id;
  }
  return null;
}

function idIn(value: unknown): string | null {
  if (typeof value !== "object" || value === null || !("id" in value)) return null;
  return typeof value.id === "string" && ID.test(value.id) ? value.id : null;
}
