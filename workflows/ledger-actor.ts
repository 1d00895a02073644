import { fillOf } from "../src/domain/ledger/capacity.ts";
import { UTC_ZONE } from "../src/domain/ledger/calendar.ts";
import { accountDueAt, capDueAt, type SweepSettings } from "../src/domain/ledger/due.ts";
import { type Account, type Ledger, levelOf, summaryOf } from "../src/domain/ledger/state.ts";
import {
  LEDGER_SUMMARIES_MAX,
  type LedgerCommand,
  type LedgerSubmitResult,
  NOTHING_KNOWN,
} from "../src/messages/ledger.ts";
import { LedgerSweeps, type SweepPorts } from "./ledger-sweeps.ts";

/** A project's ledger, independent of its host. Judges batches, and knows what to sweep and when. */
export class LedgerActor {
  readonly ledger: Ledger;
  readonly sweeps: LedgerSweeps;
  readonly #settings: SweepSettings;
  readonly #judge: SweepPorts["judge"];
  readonly #now: SweepPorts["now"];

  constructor(ledger: Ledger, settings: SweepSettings, ports: SweepPorts) {
    this.ledger = ledger;
    this.#settings = settings;
    this.#judge = ports.judge;
    this.#now = ports.now;
    this.sweeps = new LedgerSweeps(ledger, settings, ports);
  }

  /** Notes that the rail responds, which a confirmed outcome proves. */
  #noteAnswer(command: LedgerCommand): void {
    if (command.kind !== "confirm" || command.outcome === null) return;
    const open = this.ledger.accounts.get(command.agentId)?.open.get(command.transactionId);
    if (open !== undefined) this.sweeps.railAnswered(open.payment.request.rail);
  }

  /**
   * Returns when work on an account is due. A changed budget also changes the version of its team's, so the team counts
   * too.
   */
  #dueAt(account: Account): number {
    const team = levelOf(this.ledger, account.teamId);
    return Math.min(accountDueAt(account, this.#settings), capDueAt(team, this.#settings));
  }

  /** Judges a batch. Synchronous, so nothing interleaves, and the reply is sent with the history of the decision. */
  submit(commands: readonly LedgerCommand[], known = NOTHING_KNOWN): LedgerSubmitResult {
    const { ledger, sweeps } = this;
    ledger.revision += 1;
    ledger.recordedRevision = Math.max(ledger.recordedRevision, known.recorded);
    ledger.touched.clear();
    for (const command of commands) this.#noteAnswer(command);
    const replies = commands.map((command) => this.#judge(command));
    const touched = [...ledger.touched].flatMap((agentId) => ledger.accounts.get(agentId) ?? []);
    for (const account of touched) sweeps.noteChange(this.#dueAt(account), account);
    // A stop or a budget may touch more accounts than fit into a reply. The ledger then writes their records itself.
    const isLarge = touched.length > LEDGER_SUMMARIES_MAX;
    const named = new Set(commands.flatMap((command) => ("agentId" in command ? command.agentId : [])));
    const isShared = ({ agentId }: Account): boolean => !isLarge || named.has(agentId);
    sweeps.recordAtOnce(touched.filter((account) => !isShared(account)));
    const shared = touched.filter(isShared);
    if (replies.some(({ kind }) => kind === "replaced" || kind === "calendar")) sweeps.recheck();
    sweeps.clearIfIdle(this.#now());
    return {
      revision: ledger.revision,
      replies,
      fill: fillOf(ledger),
      accounts: shared
        .filter(({ confirmedRevision, revision }) => confirmedRevision < revision)
        .map(summaryOf),
      closed: Object.fromEntries(shared.filter(hasEvicted).map(({ agentId, closed }) => [agentId, closed])),
      ...zoneOf(ledger),
    };
  }
}

function zoneOf({ calendar: { timezone, tz, until } }: Ledger): Pick<LedgerSubmitResult, "zone"> {
  return timezone === UTC_ZONE.timezone ? {} : { zone: { timezone, tz, until } };
}

const hasEvicted = ({ evictedThrough }: Account): boolean => evictedThrough > 0;
