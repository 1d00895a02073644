import type { ClientSession, Collection } from "mongodb";
import { type Refusal, refusal } from "../domain/errors.ts";
import type { InviteCountDocument } from "../store/identity-documents.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Maximum number of mailed invites, so that the service cannot be used for spam. */
export const MAILED_INVITES_MAX = {
  /** Per clock hour. */
  perOrganization: 50,
  /** Per UTC day and organization. */
  perAddress: 5,
} as const;

interface Window {
  readonly name: string;
  readonly max: number;
  readonly endsAt: Date;
}

/**
 * Counts one more mailed invite under both limits, in the transaction that writes the invite: concurrent invites never
 * exceed the limits, and an invite that is not written is not counted. After a refusal, the caller must abort the
 * transaction.
 */
export async function takeInviteSlot(
  counts: Collection<InviteCountDocument>,
  invite: { readonly organizationId: string; readonly emailNormalized: string },
  now: Date,
  session: ClientSession,
): Promise<Refusal | null> {
  for (const { endsAt, max, name } of windowsOf(invite, now)) {
    const counted = await counts.findOneAndUpdate(
      { _id: name },
      { $inc: { count: 1 }, $setOnInsert: { expiresAt: endsAt } },
      { upsert: true, returnDocument: "after", session },
    );
    if ((counted?.count ?? 0) <= max) continue;
    const retryAfterSeconds = Math.max(1, Math.ceil((endsAt.getTime() - now.getTime()) / 1_000));
    return refusal("RATE_LIMITED", undefined, { retryAfterSeconds });
  }
  return null;
}

/** Returns the windows of an invite's counts. Addresses count per organization, so none learns of another's invites. */
function windowsOf(
  { emailNormalized, organizationId }: { readonly organizationId: string; readonly emailNormalized: string },
  now: Date,
): readonly Window[] {
  const { perAddress, perOrganization } = MAILED_INVITES_MAX;
  return [
    windowOf(`${organizationId}/hour`, perOrganization, HOUR_MS, now),
    windowOf(`${organizationId}/day/${emailNormalized}`, perAddress, DAY_MS, now),
  ];
}

function windowOf(whose: string, max: number, lengthMs: number, now: Date): Window {
  const number = Math.floor(now.getTime() / lengthMs);
  return { name: `${whose}/${String(number)}`, max, endsAt: new Date((number + 1) * lengthMs) };
}
