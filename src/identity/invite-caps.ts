import type { ClientSession, Collection } from "mongodb";
import { type Refusal, refusal } from "../domain/errors.ts";
import type { InviteCountDocument } from "../store/identity-documents.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Maximum number of mailed invites, so that the service does not become a sender of spam. */
export const MAILED_INVITES_MAX = {
  /** Per hour of the clock. */
  perOrganization: 50,
  /** Per UTC day, of one organization. */
  perAddress: 5,
} as const;

interface Window {
  readonly name: string;
  readonly max: number;
  readonly endsAt: Date;
}

/**
 * Takes a place for one more mailed invite under both caps, in the transaction that writes the invite: of any number at once exactly so many are
 * let through, and what is not written takes none. A refusal leaves the transaction to be aborted.
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

/** An address counts for each organization apart: an organization does not learn what others invite. */
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
