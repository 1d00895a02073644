import { Ledgers } from "../../src/actors/ledgers.ts";
import type { LedgerCommand } from "../../src/domain/ledger/commands.ts";
import type { LedgerSubmitResult } from "../../src/messages/ledger.ts";

/** A quarter of what the engine takes in one message, since an update is repeated in its answer. */
export const UPDATE_BYTES_MAX = 1_048_576;
export const sizeOf = (commands: readonly unknown[]): number => Buffer.byteLength(JSON.stringify(commands));
export const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

export const place = { organizationId: "organization", projectId: "project" };

/** A ledger's answer that refuses every command. */
export const refusing = (commands: readonly LedgerCommand[]): LedgerSubmitResult => ({
  revision: 1,
  replies: commands.map(() => ({ kind: "inactive_key" })),
  fill: { accounts: 0, bytes: 0, openPayments: 0 },
  accounts: [],
  closed: {},
});

/** Ledgers that the test answers for, on a clock that it moves. */
export const ledgersOn = (
  submit: (commands: readonly LedgerCommand[]) => Promise<LedgerSubmitResult>,
  monotonicMs: () => number,
): Ledgers =>
  new Ledgers({
    wholePayment: () => Promise.reject(new Error("no payment is answered here")),
    submit: (_project, commands) => submit(commands),
    revisions: { read: () => Promise.resolve(0), write: () => Promise.resolve() },
    recordAccount: () => Promise.resolve(),
    flushPublished: () => undefined,
    confirmAfterMs: 1_000,
    timers: { after: () => () => undefined, monotonicMs },
    onError: () => undefined,
  });
