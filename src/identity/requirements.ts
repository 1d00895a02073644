import type { AnyBulkWriteOperation, ClientSession } from "mongodb";
import type { UserDocument } from "../store/identity-documents.ts";
import type { WritingContext } from "./context.ts";

/** A requirement of an organization, copied to each of its people's records, where every request finds it. */
type Requirement = "secondFactorRequired" | "ssoRequired";

const SET = {
  secondFactorRequired: { secondFactorRequired: true },
  ssoRequired: { ssoRequired: true },
} as const;
const UNSET = {
  secondFactorRequired: { secondFactorRequired: "" },
  ssoRequired: { ssoRequired: "" },
} as const;
const NOT_REQUIRED = {
  secondFactorRequired: { secondFactorRequired: undefined },
  ssoRequired: { ssoRequired: undefined },
} as const;

/** Sets or removes a requirement in each person's record. A record that is not genuine stays unchanged. */
export async function requireOfAll(
  { accessProofs, collections: { users } }: WritingContext,
  organizationId: string,
  requirement: Requirement,
  isRequired: boolean,
  session: ClientSession,
): Promise<void> {
  const found = await users.find({ organizationId }, { session }).toArray();
  const changes = found.filter(
    (user) => (user[requirement] === true) !== isRequired && accessProofs.genuine("user", user) !== null,
  );
  const writes = changes.map((user): AnyBulkWriteOperation<UserDocument> => {
    const fields = isRequired ? SET[requirement] : NOT_REQUIRED[requirement];
    const { proof } = accessProofs.changed("user", user, fields);
    const update = isRequired
      ? { $set: { ...SET[requirement], proof } }
      : { $set: { proof }, $unset: UNSET[requirement] };
    return { updateOne: { filter: { _id: user._id }, update } };
  });
  if (writes.length > 0) await users.bulkWrite(writes, { session });
}
