import type { AuditLog } from "./chain/appender.ts";
import type { AuditRecord } from "../domain/audit/entry.ts";
import { type ErrorCode, type Refusal, statusOf } from "../domain/errors.ts";
import type { Result } from "../domain/result.ts";
import type { Reply } from "../../server/handlers/types.ts";
import type { Deadline } from "../lib/deadline.ts";
import { newId } from "../lib/ids.ts";
import { type Call, auditPrincipalsOf, leavesEntry, recordOf, successStatusOf } from "./record.ts";
import type { Refusals } from "./refusals.ts";
import { RequestAudit, type RequestAuditDependencies } from "./request-audit.ts";

export type { Call } from "./record.ts";

/**
 * Refusals that leave no entry. They only say that there was too much of something; an entry for each would let any
 * caller with write access write without end. A begun change has its entry in any case.
 */
const UNLOGGED: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["RATE_LIMITED"]);

/** Deadline of a refused request, which changes nothing. */
const OVER = { isOver: true };

export interface AuditTrailDependencies extends RequestAuditDependencies {
  readonly log: AuditLog;
  readonly refusals: Refusals;
}

/**
 * Writes the audit entries of requests: one for every operation that changes something, except agents' payments, whose
 * entries are written from their actors' decisions. Nothing else writes entries of requests.
 */
export class AuditTrail {
  readonly #dependencies: AuditTrailDependencies;

  constructor(dependencies: AuditTrailDependencies) {
    this.#dependencies = dependencies;
  }

  /** `deadline`: time after which the request's transactions replace nothing any more. */
  open(call: Call, params: unknown, deadline: Pick<Deadline, "isOver">): RequestAudit {
    return new RequestAudit(this.#dependencies, call, params, deadline);
  }

  /**
   * Records the outcome of a call; resolves once its entry is durable, before any response is sent. Throws if that
   * fails. Reads, and calls of no known organization, leave no entry.
   */
  async record(
    call: Call,
    params: unknown,
    audit: RequestAudit,
    result: Result<Reply<unknown>>,
  ): Promise<void> {
    if (!leavesEntry(call.id)) return;
    const { outbox } = this.#dependencies;
    const committed = audit.committed ?? (await this.#committedWithoutNote(audit, result));
    if (committed !== null) return await outbox.settle(committed);
    await this.#recordOutcome(call, params, audit, result);
    if (audit.begun !== null) outbox.forget(audit.begun);
  }

  /** Records a refusal that preceded the reading of the request. */
  async recordRefusal(call: Call, params: unknown, refusal: Refusal): Promise<void> {
    await this.record(call, params, this.open(call, params, OVER), { ok: false, refusal });
  }

  /** Returns the committed record of a failed or slow transaction. The sweep finds a later commit. */
  async #committedWithoutNote(
    { attempted }: RequestAudit,
    result: Result<Reply<unknown>>,
  ): Promise<AuditRecord | null> {
    if (attempted === null || result.ok || statusOf(result.refusal) < 500) return null;
    return (await this.#dependencies.outbox.holds(attempted)) ? attempted : null;
  }

  /** Records entries made from the response: for refusals, and for changes that another system decided. */
  async #recordOutcome(
    call: Call,
    params: unknown,
    audit: RequestAudit,
    result: Result<Reply<unknown>>,
  ): Promise<void> {
    const { begun } = audit;
    if (begun === null && !result.ok && UNLOGGED.has(result.refusal.code)) return;
    const { clock, log, refusals } = this.#dependencies;
    const status = result.ok ? (result.value.status ?? successStatusOf(call.id)) : statusOf(result.refusal);
    const { after, before } = audit.changeBehind(status);
    const records = auditPrincipalsOf(call, audit.accounts, result).map((principal) =>
      recordOf(call, params, {
        entryKey: begun?.entryKey ?? newId("req"),
        at: clock().getTime(),
        result: { status, code: result.ok ? null : result.refusal.code },
        principal,
        on: null,
        answered: result.ok ? result.value.body : null,
        before,
        after,
      }),
    );
    // The refusal of a begun change uses the begun entry's key, so that a restored copy of the outbox's record has no
    // place in the chain.
    const isCounted = (record: AuditRecord): boolean => begun === null && isPlainRefusal(record);
    await Promise.all(
      records.map((record) => (isCounted(record) ? refusals.record(record) : log.append(record))),
    );
  }
}

/** Whether the refusal surely did nothing and has no details. A 5xx may have been executed. */
const isPlainRefusal = ({ after, before, result: { code, status } }: AuditRecord): boolean =>
  code !== null && status !== null && status < 500 && before === null && after === null;
