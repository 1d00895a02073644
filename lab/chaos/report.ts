/** Cost of plain payments while nothing happens. */
export interface Usage {
  /** Projects that paid at the same time. */
  readonly projects: number;
  readonly paymentsPerSecond: number;
  /** Processor time of each component. */
  readonly processorMsPerPayment: Readonly<Record<string, number>>;
}

/** What one disaster came to. */
export interface RoundResult {
  readonly round: number;
  readonly disaster: string;
  /** Into the load. */
  readonly atMs: number;
  readonly kills: number;
  /** Until all that was killed could be used again. */
  readonly backMs: number;
  /** Payments that were asked for. */
  readonly payments: number;
  /** Pauses, policies, budgets and caps that were changed meanwhile. */
  readonly changes: number;
  /** Requests sent again for want of an answer. */
  readonly retries: number;
  readonly slowestAnswerMs: number;
  /** Longest time in which no payment was answered, of all projects together and of the worst one. */
  readonly gapMs: number;
  readonly worstProjectGapMs: number;
  /** Longest time in which an engine, asked directly, gave no answer; null if not measured. */
  readonly engineGapMs: number | null;
  readonly usage: Usage | null;
  /** From the end of the load until nothing was left to do. */
  readonly settledMs: number;
  /** Empty: the books agree. */
  readonly differences: readonly string[];
}

export interface RunResult {
  readonly seed: number;
  readonly startedAt: string;
  readonly seconds: number;
  readonly rounds: readonly RoundResult[];
  readonly kills: number;
  readonly payments: number;
  readonly retries: number;
  /** Webhook requests that came, repetitions included. */
  readonly deliveries: number;
  /** Transactions on the chain. */
  readonly chainTransactions: number;
  /** Of them those that a foreign sender has sent by the service's key. */
  readonly foreignTransactions: number;
  /** Records that were made as old as their retention. */
  readonly agedRecords: number;
  /** Of the last audit, over everything that the run has made. */
  readonly differences: readonly string[];
  readonly passed: boolean;
  /** Where the data is, if it was kept. */
  readonly dataDir: string | null;
}

const DIFFERENCES_SHOWN_MAX = 40;
const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;

/** The longest time between two answers of a load, its ends included. */
export function longestGapMs(
  answers: readonly { readonly atMs: number }[],
  { endedAt, startedAt }: { readonly startedAt: number; readonly endedAt: number },
): number {
  const times = [startedAt, ...answers.map(({ atMs }) => Math.min(atMs, endedAt)), endedAt];
  return Math.max(...times.slice(1).map((ms, index) => ms - (times[index] ?? ms)));
}

export function roundText(round: RoundResult, rounds: number): string {
  const verdict = round.differences.length === 0 ? "the books agree" : "THE BOOKS DIFFER";
  return [
    `${String(round.round).padStart(String(rounds).length)}/${String(rounds)}`,
    `${round.disaster} at ${seconds(round.atMs)}, back after ${seconds(round.backMs)};`,
    `${String(round.payments)} payments, ${String(round.changes)} changes, ${String(round.retries)} retries, slowest answer ${seconds(round.slowestAnswerMs)}, none for ${seconds(round.gapMs)}, of a project for ${seconds(round.worstProjectGapMs)};`,
    `settled in ${seconds(round.settledMs)}; ${verdict}`,
    ...listed(round.differences),
  ].join(" ");
}

/** `command` repeats the run, with its seed. */
export function summaryText(result: RunResult, command: string): string {
  const {
    agedRecords,
    chainTransactions,
    dataDir,
    deliveries,
    differences,
    foreignTransactions,
    kills,
    passed,
    payments,
    retries,
    rounds,
    seed,
  } = result;
  const failed = rounds.filter((round) => round.differences.length > 0).length;
  return [
    "",
    `${passed ? "PASSED" : "FAILED"}: ${String(rounds.length)} rounds in ${String(Math.round(result.seconds))} s, ${String(failed)} of them with differences`,
    `  ${String(kills)} processes killed, ${String(payments)} payments, ${String(retries)} retries, ${String(chainTransactions)} transactions on the chain, ${String(foreignTransactions)} of them foreign, ${String(deliveries)} webhook deliveries`,
    `  ${String(agedRecords)} records were made older than their retention`,
    `  seed ${String(seed)}${passed ? "" : `; again: npm run ${command} --seed ${String(seed)} --keep`}`,
    ...(dataDir === null ? [] : [`  data and logs: ${dataDir}`]),
    ...(differences.length === 0 ? [] : ["  in the end:", ...differences.map((line) => `    ${line}`)]),
  ].join("\n");
}

function listed(differences: readonly string[]): string[] {
  const shown = differences.slice(0, DIFFERENCES_SHOWN_MAX).map((line) => `\n    ${line}`);
  const more = differences.length - shown.length;
  return more > 0 ? [...shown, `\n    and ${String(more)} more`] : shown;
}
