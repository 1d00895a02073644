import type { Ledgers } from "../../src/actors/ledgers.ts";
import type { AgentProfile } from "../../src/domain/agent/state.ts";
import type { RecordedCap } from "../../src/domain/ledger/commands.ts";
import { NO_RAISE_BASIS, type RaiseBasis } from "../../src/domain/ledger/raises.ts";
import type { Records } from "./counterparts.ts";

/** A raise that a person grants. */
export interface RaiseGrant {
  readonly raiseId: string;
  readonly amountMc: number;
  /** Left out: each limit's own window; null: for good. */
  readonly endsAt?: number | null;
}

/** The parts of a process that grant raises. */
interface Granting {
  readonly ledgers: Ledgers;
  readonly records: Records;
  /** State of the agent's limits as a query reads it; null: there is no account. */
  readonly readBasis: (agentId: string) => Promise<RaiseBasis | null>;
  readonly call: <T>(work: () => T) => Promise<T>;
  readonly writeCaps: (caps: readonly RecordedCap[]) => Promise<void>;
}

/**
 * As src/containers/raise-requests.ts: the decision is recorded with the limits that it is made on, and whoever reads the request
 * finishes it.
 */
export async function grantRaise(
  { call, ledgers, readBasis, records, writeCaps }: Granting,
  profile: AgentProfile,
  { raiseId, ...grant }: RaiseGrant,
): Promise<void> {
  const { agentId } = profile;
  const basis = (await readBasis(agentId)) ?? NO_RAISE_BASIS;
  const decided = await call(() => records.decideRaise(raiseId, basis));
  if (decided === null) return;
  const command = { kind: "grant_raise", agentId, raiseId, ...grant, basis: decided } as const;
  const { reply } = await ledgers.submitRecorded(profile, command);
  switch (reply.kind) {
    case "raised":
      await writeCaps(reply.caps);
      await call(() => records.endRaise(raiseId));
      await ledgers.submit(profile, { kind: "confirm_raise", agentId, raiseId });
      return;
    case "no_account":
    case "raise_not_needed":
      return call(() => records.endRaise(raiseId));
    default:
      return call(() => records.reopenRaise(raiseId, decided));
  }
}
