import { contentHash } from "../../../src/lib/ids.ts";
import { valueAt } from "../../../src/lib/value-at.ts";
import { ACCESS_RECORDS, type AccessKind, type AccessProofs } from "../../../src/secrets/access-proofs.ts";
import { ADVICE, type Difference } from "./difference.ts";

/** Record of an organization that decides access, or where its events go. */
export interface AccessRecord {
  readonly kind: ComparedKind;
  readonly record: { readonly _id: string };
}

/**
 * Nouns of the compared records, for messages. Events and deliveries are omitted because they are many and are checked
 * when sent; other kinds belong to no organization.
 */
const NOUNS = {
  user: "person",
  session: "session",
  organizationKey: "organization key",
  invite: "invite",
  project: "project",
  team: "team",
  projectRules: "project",
  teamRules: "team",
  projectRestrictions: "project",
  teamRestrictions: "team",
  agentRestrictions: "agent",
  webhook: "webhook endpoint",
} as const satisfies Partial<Record<AccessKind, Difference["of"]>>;
export type ComparedKind = keyof typeof NOUNS;

/** Kinds of compared records, each with its collection and the path of its proof. */
export const COMPARED_KINDS = (Object.keys(NOUNS) as ComparedKind[]).map((kind) => ({
  kind,
  ...ACCESS_RECORDS[kind],
}));

/** Compares records with the MACs that the service made when it wrote them. */
export const compareAccess = (records: readonly AccessRecord[], proofs: AccessProofs): Difference[] =>
  records
    .filter(({ kind, record }) => !proofs.isGenuine(kind, record) || !hasOwnRules(kind, record))
    .map(({ kind, record }) => ({
      kind: "access_record_differs",
      of: NOUNS[kind],
      id: record._id,
      agentId: null,
      projectId: null,
      what: `what is proven in ${ACCESS_RECORDS[kind].what}`,
      expected: "as the service wrote it",
      found: "changed since",
      advice: ADVICE.access,
      repair: null,
      mayBeInFlight: false,
    }));

/** Whether the contents match their hash. The proof of rules and restrictions covers only the hash. */
function hasOwnRules(kind: AccessKind, record: object): boolean {
  const isHashed = (part: string, contents: string): boolean =>
    contentHash(valueAt(record, `${part}.${contents}`)) === valueAt(record, `${part}.contentHash`);
  if (kind.endsWith("Rules")) return isHashed("approvalRules", "rules");
  return !kind.endsWith("Restrictions") || isHashed("restrictions", "lists");
}
