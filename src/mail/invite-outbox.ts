import { notRecent } from "../lib/stamps.ts";
import type { Collection, Db } from "mongodb";
import type { InviteMailInput } from "../messages/mail.ts";
import type { Clock } from "../payments/ports.ts";
import { withTimeout } from "../lib/with-timeout.ts";
import { mailCollections, type MailedInvite } from "../store/mail-documents.ts";

/** Time that a request may wait for the start of its mail's workflow; after it the sweep starts it. */
const BEGIN_MS = 1_000;
/** The sweep starts the mail of an invite that was written so long ago: the process that wrote it has died, or is about to. */
const ORPHANED_AFTER_MS = 2_000;
/** Invites in one sweep. */
const SWEEP_MAX = 100;

export interface InviteOutboxDependencies {
  readonly db: Db;
  /** Starts the workflow that mails an invite; once, however often it is called. */
  readonly start: (input: InviteMailInput) => Promise<void>;
  readonly clock: Clock;
  readonly onWarning: (message: string, error: unknown) => void;
}

/**
 * Sees to it that each invite that is to be mailed has its workflow: the write that makes the invite sets `mailStartPending`, until the
 * workflow was started, by the process that wrote the invite or by the sweep of any worker.
 */
export class InviteOutbox {
  readonly #dependencies: InviteOutboxDependencies;
  readonly #invites: Collection<MailedInvite>;

  constructor(dependencies: InviteOutboxDependencies) {
    this.#dependencies = dependencies;
    this.#invites = mailCollections(dependencies.db).invites;
  }

  /** Begins at once what was just written. Never throws: what does not come off is left to the sweep. */
  async begin(invite: Pick<MailedInvite, "_id" | "organizationId">): Promise<void> {
    try {
      await withTimeout(BEGIN_MS, this.#begun(invite));
    } catch (error) {
      this.#dependencies.onWarning("an invite's mail was not begun at once", error);
    }
  }

  /** Starts what was left; how many those were. Never throws, since the sweeping process has other things to do as well. */
  async sweep(): Promise<number> {
    const createdAt = notRecent(this.#dependencies.clock().getTime(), ORPHANED_AFTER_MS);
    try {
      const left = await this.#invites
        .find({ mailStartPending: true, createdAt }, { projection: { organizationId: 1 } })
        .limit(SWEEP_MAX)
        .toArray();
      for (const invite of left) await this.#begun(invite);
      return left.length;
    } catch (error) {
      this.#dependencies.onWarning("mails of invites can't be begun for now", error);
      return 0;
    }
  }

  async #begun({ _id, organizationId }: Pick<MailedInvite, "_id" | "organizationId">): Promise<void> {
    await this.#dependencies.start({ inviteId: _id, organizationId });
    await this.#invites.updateOne({ _id, mailStartPending: true }, { $unset: { mailStartPending: "" } });
  }
}
