import type { Observer } from "./audit/observer.ts";

const TRAIL_ENTRIES_MAX = 30;

/** Remembers the last things that were observed, as values; they become text only when a failure prints them. */
export class Trail {
  readonly observer: Observer;
  readonly #entries: { step: number; what: unknown[] }[] = [];
  #next = 0;
  step = 0;

  constructor(observer: Observer) {
    const note = (...what: unknown[]): void => this.#note(...what);
    const traced =
      <A extends unknown[]>(name: string, tell: (...args: A) => void, shown: (...args: A) => unknown[]) =>
      (...args: A): void => {
        note(name, ...shown(...args));
        tell(...args);
      };
    this.observer = {
      agentCreated: traced("created", (...args) => observer.agentCreated(...args), all),
      agentAnswered: traced(
        "agent",
        (answered) => observer.agentAnswered(answered),
        ({ agentId, command, reply }) => [agentId, command, "→", reply],
      ),
      ledgerAnswered: traced(
        "ledger",
        (...args) => observer.ledgerAnswered(...args),
        (command, reply, { now }) => [new Date(now).toISOString(), command, "→", reply],
      ),
      rolledOver: traced(
        "continued as new",
        (...args) => observer.rolledOver(...args),
        (actor) => [actor],
      ),
      accountRecorded: (summary) => observer.accountRecorded(summary),
      agentRecorded: (summary) => observer.agentRecorded(summary),
      paymentRecorded: traced(
        "recorded",
        (payment) => observer.paymentRecorded(payment),
        ({ phase, request, revision, status }) => [request.transactionId, revision, status, phase],
      ),
      captured: traced("captured", (...args) => observer.captured(...args), all),
      railAnswered: (...args) => observer.railAnswered(...args),
      clientAnswered: (...args) => observer.clientAnswered(...args),
      pauseAnswered: traced("pause answered", (...args) => observer.pauseAnswered(...args), all),
      stopAnswered: traced("stop answered", (...args) => observer.stopAnswered(...args), all),
      archiveAnswered: traced(
        "archive answered",
        (...args) => observer.archiveAnswered(...args),
        (id) => [id],
      ),
      keyAnswered: traced("key answered", (...args) => observer.keyAnswered(...args), all),
      capsAnswered: traced("caps answered", (...args) => observer.capsAnswered(...args), all),
      rulesAnswered: traced("rules answered", (...args) => observer.rulesAnswered(...args), all),
      restrictionsAnswered: traced(
        "restrictions answered",
        (...args) => observer.restrictionsAnswered(...args),
        all,
      ),
      checked: traced("dry run", (...args) => observer.checked(...args), all),
      atRest: (books) => observer.atRest(books),
      broke: traced(
        "broke",
        (...args) => observer.broke(...args),
        (what, error) => [what, String(error)],
      ),
    };
  }

  /** The newest last. */
  lines(): string[] {
    const inOrder = [...this.#entries.slice(this.#next), ...this.#entries.slice(0, this.#next)];
    return inOrder.map(({ step, what }) => `${String(step)} ${what.map(text).join(" ")}`);
  }

  #note(...what: unknown[]): void {
    this.#entries[this.#next] = { step: this.step, what };
    this.#next = (this.#next + 1) % TRAIL_ENTRIES_MAX;
  }
}

const all = <A extends unknown[]>(...args: A): A => args;

const text = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));
