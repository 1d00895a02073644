import type { ClientSession, Collection } from "mongodb";
import { operations } from "../contract/registry.ts";
import type { OutputOf } from "../contract/types.ts";
import { refusal } from "../domain/errors.ts";
import { ok, refused, type Result } from "../domain/result.ts";
import { payloadHash, shortHash } from "../lib/ids.ts";
import type { Sealer } from "../secrets/sealer.ts";
import type { InviteRequestDocument } from "../store/identity-documents.ts";

export type InviteAnswer = OutputOf<typeof operations.createInvite>;

const ANSWER_PURPOSE = "invite-answer";

export interface KeyedRequest {
  readonly organizationId: string;
  readonly userId: string;
  readonly idempotencyKey: string;
  readonly payload: unknown;
}

/** Requests for invites that carry an idempotency key, stored in the transactions that answer them. */
export class InviteRequests {
  readonly #requests: Collection<InviteRequestDocument>;
  readonly #sealer: Sealer;

  constructor(requests: Collection<InviteRequestDocument>, sealer: Sealer) {
    this.#requests = requests;
    this.#sealer = sealer;
  }

  /** Returns the earlier answer to the same request; null if none. Refuses a key reused with another payload. */
  async answered(request: KeyedRequest, session: ClientSession): Promise<Result<InviteAnswer | null>> {
    const _id = idOf(request);
    const found = await this.#requests.findOne({ _id }, { session });
    if (found === null) return ok(null);
    if (found.payloadHash !== payloadHash(request.payload)) return refused(refusal("IDEMPOTENCY_KEY_REUSED"));
    const opened: unknown = JSON.parse(this.#sealer.open(ANSWER_PURPOSE, _id, found.sealedAnswer));
    return ok(operations.createInvite.output.parse(opened));
  }

  /** Stores the answer. Of two concurrent requests one conflicts, and gets the same answer. */
  async keep(
    request: KeyedRequest,
    answer: InviteAnswer,
    createdAt: Date,
    session: ClientSession,
  ): Promise<void> {
    const _id = idOf(request);
    const sealedAnswer = this.#sealer.seal(ANSWER_PURPOSE, _id, JSON.stringify(answer));
    const document = { _id, payloadHash: payloadHash(request.payload), sealedAnswer, createdAt };
    await this.#requests.insertOne(document, { session });
  }
}

const idOf = ({ idempotencyKey, organizationId, userId }: KeyedRequest): string =>
  `${organizationId}/${userId}/${shortHash(idempotencyKey)}`;
