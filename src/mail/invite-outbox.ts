import { notRecent } from "../lib/stamps.ts";
import type { Collection, Db } from "mongodb";
import type { InviteMailInput } from "../messages/mail.ts";
import type { Clock } from "../payments/ports.ts";
import { withTimeout } from "../lib/with-timeout.ts";
import { mailCollections, type MailedInvite } from "../store/mail-documents.ts";

/** Maximum wait of a request for the start of its mail's workflow; later, the sweep starts it. */
const BEGIN_TIMEOUT_MS = 1_000;
/** Age at which the sweep starts an invite's mail: the process that wrote the invite has died, or is about to. */
const ORPHANED_AFTER_MS = 2_000;
const SWEEP_MAX = 100;

export interface InviteOutboxDependencies {
  readonly db: Db;
  /** Starts the workflow that mails an invite. Idempotent. */
  readonly start: (input: InviteMailInput) => Promise<void>;
  readonly clock: Clock;
  readonly onWarning: (message: string, error: unknown) => void;
}

/**
 * Ensures that each invite to be mailed has its workflow. The write that creates the invite sets `mailStartPending`,
 * until the workflow was started by the process that wrote the invite, or by any worker's sweep.
 */
export class InviteOutbox {
  readonly #dependencies: InviteOutboxDependencies;
  readonly #invites: Collection<MailedInvite>;

  constructor(dependencies: InviteOutboxDependencies) {
    this.#dependencies = dependencies;
    this.#invites = mailCollections(dependencies.db).invites;
  }

  /** Starts the mail of an invite that was just written. Never throws: a failed start is left to the sweep. */
  async begin(invite: Pick<MailedInvite, "_id" | "organizationId">): Promise<void> {
    try {
      await withTimeout(BEGIN_TIMEOUT_MS, this.#begun(invite));
    } catch (error) {
      this.#dependencies.onWarning("an invite's mail was not started at once", error);
    }
  }

  /** Starts the remaining mails; returns their number. Never throws, since the sweeping process has other work too. */
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
      this.#dependencies.onWarning("the mailing of invites can't be started for now", error);
      return 0;
    }
  }

  async #begun({ _id, organizationId }: Pick<MailedInvite, "_id" | "organizationId">): Promise<void> {
    await this.#dependencies.start({ inviteId: _id, organizationId });
    await this.#invites.updateOne({ _id, mailStartPending: true }, { $unset: { mailStartPending: "" } });
  }
}
