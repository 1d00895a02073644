import { contentHash } from "../../../src/lib/ids.ts";
import { valueAt } from "../../../src/lib/value-at.ts";
import { ACCESS_RECORDS, type AccessKind, type AccessProofs } from "../../../src/secrets/access-proofs.ts";
import { ADVICE, type Difference } from "./difference.ts";

/** A record that decides who may do what. */
export interface AccessRecord {
  readonly kind: AccessKind;
  readonly record: { readonly _id: string };
}

/** Nouns of the records, for messages. */
const NOUNS: Readonly<Record<AccessKind, Difference["of"]>> = {
  user: "person",
  session: "session",
  passkeyChallenge: "challenge",
  organizationKey: "organization key",
  invite: "invite",
  project: "project",
  team: "team",
  projectRules: "project",
  teamRules: "team",
};

/** Checks records against the MACs that the service made when it wrote them. */
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

/** The proof of rules covers their hash. */
const hasOwnRules = (kind: AccessKind, record: object): boolean =>
  !kind.endsWith("Rules") ||
  contentHash(valueAt(record, "approvalRules.rules")) === valueAt(record, "approvalRules.contentHash");
