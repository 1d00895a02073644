import type { Db } from "mongodb";
import pLimit from "p-limit";
import { type HeldPayment, MAILED_PEOPLE_MAX } from "../domain/approval-mails.ts";
import type { MailedPerson } from "../messages/mail.ts";
import type { EventDocument } from "../store/documents.ts";
import { type ContainerRef, covers } from "../domain/binding.ts";
import { mailCollections } from "../store/mail-documents.ts";

/** Maximum signals in flight. */
const SIGNALS_MAX = 16;

export interface ApprovalNoticeDependencies {
  readonly db: Db;
  /** Tells the person's workflow of payments on hold. Repeatable. */
  readonly tell: (person: MailedPerson, held: readonly HeldPayment[]) => Promise<void>;
}

/**
 * Tells the workflows of all people who want mail of payments that were put on hold, one signal per person. Resolves to
 * the number of signals.
 */
export async function noticeHeld(
  { db, tell }: ApprovalNoticeDependencies,
  events: readonly EventDocument[],
): Promise<number> {
  const { users } = mailCollections(db);
  let told = 0;
  for (const [organizationId, held] of heldByOrganization(events)) {
    const people = await users
      .find(
        { organizationId, approvalMails: true, role: { $ne: "auditor" } },
        { projection: { _id: 1, binding: 1 } },
      )
      .sort({ _id: 1 })
      .limit(MAILED_PEOPLE_MAX)
      .toArray();
    const concerned = people.flatMap(({ _id, binding }) => {
      const theirs = held.filter(({ container }) => covers(binding ?? { type: "organization" }, container));
      return theirs.length === 0 ? [] : [{ userId: _id, held: theirs.map(({ payment }) => payment) }];
    });
    await pLimit(SIGNALS_MAX).map(concerned, (each) =>
      tell({ organizationId, userId: each.userId }, each.held),
    );
    told += concerned.length;
  }
  return told;
}

interface Held {
  readonly payment: HeldPayment;
  readonly container: ContainerRef;
}

function heldByOrganization(events: readonly EventDocument[]): ReadonlyMap<string, readonly Held[]> {
  const heldIn = new Map<string, Held[]>();
  for (const { data, organizationId, type } of events) {
    if (type !== "approval.requested" || data.approval === undefined) continue;
    const { _id: approvalId, createdAt } = data.approval;
    const held = { payment: { approvalId, heldAt: createdAt.getTime() }, container: data.approval };
    heldIn.set(organizationId, [...(heldIn.get(organizationId) ?? []), held]);
  }
  return heldIn;
}
