import type { Collection, Db } from "mongodb";
import type { Role } from "../contract/types.ts";
import type { Bound } from "../domain/binding.ts";
import { type ApprovalDocument, COLLECTIONS } from "./documents.ts";

export interface InviteMail {
  /** `mailing`: the mail server has not accepted the mail yet. `refused`: it permanently rejects this address. */
  readonly state: "mailing" | "mailed" | "refused";
  /** Sealed link, bound to the invite's id, until the mail is sent or refused. */
  readonly sealedLink: string | null;
  readonly endedAt: Date | null;
}

/** Fields of an invite's record that its mail needs; the server writes the rest. */
export interface MailedInvite {
  readonly _id: string;
  readonly organizationId: string;
  readonly email: string;
  readonly role: Role;
  readonly createdBy: { readonly id: string };
  readonly createdAt: Date;
  readonly expiresAt: Date;
  /** Null if the invite is not mailed; its link was in the response. */
  readonly mail: InviteMail | null;
  /** Set until the workflow that mails the invite is started. */
  readonly mailStartPending?: true;
}

interface Named {
  readonly _id: string;
  readonly name: string;
}

interface Person extends Named {
  readonly organizationId: string;
  readonly email: string;
  readonly role: Role;
  readonly binding?: Bound | null;
  readonly approvalMails?: true;
  readonly secondFactorRequired?: true;
}

/** Fields of a second factor that tell whether it is in force. */
interface Factor {
  readonly _id: string;
  readonly userId: string;
  readonly kind: "totp" | "passkey";
  readonly confirmed?: object | null;
}

export interface MailCollections {
  readonly invites: Collection<MailedInvite>;
  readonly organizations: Collection<Named>;
  readonly users: Collection<Person>;
  readonly factors: Collection<Factor>;
  readonly approvals: Collection<ApprovalDocument>;
}

export function mailCollections(db: Db): MailCollections {
  const options = { readPreference: "primary" } as const;
  return {
    invites: db.collection("invites", options),
    organizations: db.collection("organizations", options),
    users: db.collection("users", options),
    factors: db.collection("factors", options),
    approvals: db.collection(COLLECTIONS.approvals, options),
  };
}
