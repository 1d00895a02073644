import { LRUCache } from "lru-cache";
import type { ProjectRef } from "../messages/ledger.ts";
import { LedgerLost, StaleLedger, StaleRecords } from "./actor-unavailable.ts";

/** Reason why a project decides nothing until an operator acts. */
export type BlockReason = "ledger_lost" | "stale_ledger" | "stale_records";

export interface BlockedProject {
  readonly projectId: string;
  readonly reason: BlockReason;
}

interface Blocked extends BlockedProject {
  readonly project: ProjectRef;
  askedAtMs: number;
}

const BLOCKED_MAX = 1_000;

/** Interval at which a blocked ledger is asked again without a request: an operator may have restored it. */
const RECHECK_INTERVAL_MS = 5_000;

function reasonIn(error: unknown): BlockReason | null {
  if (error instanceof LedgerLost) return "ledger_lost";
  if (error instanceof StaleLedger) return "stale_ledger";
  return error instanceof StaleRecords ? "stale_records" : null;
}

/** Projects that wait for an operator, as last seen by this process. */
export class BlockedProjects {
  readonly #blocked = new LRUCache<string, Blocked>({ max: BLOCKED_MAX });
  readonly #ask: (project: ProjectRef) => Promise<unknown>;
  readonly #now: () => number;

  /** `ask` queries the ledger; its outcome is reported to `answered` or `failed`. */
  constructor(ask: (project: ProjectRef) => Promise<unknown>, now: () => number) {
    this.#ask = ask;
    this.#now = now;
  }

  answered({ projectId }: ProjectRef): void {
    this.#blocked.delete(projectId);
  }

  failed(project: ProjectRef, error: unknown): void {
    const reason = reasonIn(error);
    const { organizationId, projectId } = project;
    if (reason === null) return;
    const askedAtMs = this.#now();
    this.#blocked.set(projectId, { project: { organizationId, projectId }, projectId, reason, askedAtMs });
  }

  /** Lists all blocked projects. Asks again, in the background, about those not asked lately. */
  list(): readonly BlockedProject[] {
    const now = this.#now();
    const all = [...this.#blocked.values()];
    for (const each of all) {
      if (now - each.askedAtMs < RECHECK_INTERVAL_MS) continue;
      each.askedAtMs = now;
      this.#ask(each.project).catch(() => undefined);
    }
    return all.map(({ projectId, reason }) => ({ projectId, reason }));
  }
}
