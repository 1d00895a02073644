import { windowBounds } from "../../src/domain/ledger/calendar.ts";
import { judge } from "../../src/domain/ledger/judge.ts";
import { packLedger, unpackLedger } from "../../src/domain/ledger/pack.ts";
import type { Account, Ledger } from "../../src/domain/ledger/state.ts";
import type { Windows } from "../../src/domain/ledger/windows.ts";
import type { LedgerDomain } from "../../test/domain/ledger/world.ts";
import { DAY, HOUR } from "../../test/domain/support/actor.ts";
import { after, judging, putLevel, putUsage } from "./ledger-faults.ts";
import type { Mutant } from "./mutant.ts";

/** Faults of spend limits by period, as other services have had them. */

const [DAYS, MONTHS] = [0, 2];

const without = ({ at, mc }: Windows, place: number): Windows => ({
  at,
  mc: mc.map((amount, index) => (index === place ? 0 : amount)),
});

/** Sets back one period at all levels. */
function reset(ledger: Ledger, place: number): void {
  for (const account of ledger.accounts.values())
    putUsage(ledger, account, { windows: without(account.usage.windows, place) });
  for (const [teamId, { windows }] of ledger.teams)
    putLevel(ledger, teamId, { windows: without(windows, place) });
  putLevel(ledger, null, { windows: without(ledger.project.windows, place) });
}

const prolonged = ({ increases = [], ...policy }: Account["policy"]): Account["policy"] => ({
  ...policy,
  ...(increases.length > 0 && {
    increases: increases.map((each) => ({ ...each, endsAt: each.endsAt + 90 * DAY })),
  }),
});

/** Resets a period where `isDue` says so, before each command. */
function resetting(
  place: number,
  isDue: (ledger: Ledger, now: number, last: number) => boolean,
): LedgerDomain {
  let last = 0;
  return judging((ledger, command, now) => {
    if (last > 0 && isDue(ledger, now, last)) {
      reset(ledger, place);
      last = now;
    }
    if (last === 0) last = now;
    return judge(ledger, command, now);
  });
}

export const spendLimitMutants: readonly Mutant<LedgerDomain>[] = [
  {
    fault: "a month is 30 days",
    complaint: "the month of",
    domain: () => resetting(MONTHS, (_ledger, now, last) => now - last >= 30 * DAY),
  },
  {
    fault: "an edit of the limits begins new windows",
    complaint: "of agent",
    domain: () =>
      after(({ command, is, ledger }) => {
        if (command.kind === "change_policy" && is !== undefined)
          putUsage(ledger, is, { windows: { at: is.usage.windows.at, mc: [0, 0, 0, 0, 0] } });
      }),
  },
  {
    fault: "a day begins again at the second occurrence of a repeated hour",
    complaint: "the day of",
    domain: () => {
      let before = 0;
      return judging((ledger, command, now) => {
        const { calendar } = ledger;
        // The clocks show the reset once more an hour later, where they go back.
        const [start = 0] = windowBounds(calendar, Math.max(now, before)).starts;
        const isRepeated = calendar.segments.some(
          ([since, minutes], place) =>
            minutes < (calendar.segments[place - 1]?.[1] ?? minutes) && Math.abs(since - start) <= HOUR,
        );
        if (isRepeated && before < start + HOUR && now >= start + HOUR) reset(ledger, DAYS);
        before = Math.max(before, now);
        return judge(ledger, command, now);
      });
    },
  },
  {
    fault: "a change of the calendar forgets what its new windows do not reach back to",
    complaint: "the day of",
    domain: () =>
      after(({ command, ledger }) => {
        if (command.kind !== "replace_calendar") return;
        ledger.calendar = { ...ledger.calendar, keptStarts: ledger.calendar.keptStarts.map(() => Infinity) };
      }),
  },
  {
    fault: "an approval stays in the windows of its request",
    complaint: "of agent",
    domain: () =>
      judging((ledger, command, now) => {
        const windows =
          "agentId" in command ? ledger.accounts.get(command.agentId)?.usage.windows : undefined;
        const reply = judge(ledger, command, now);
        if (command.kind !== "approve" || windows === undefined) return reply;
        const account = ledger.accounts.get(command.agentId);
        const isMoved = reply.kind === "payment" && reply.payment.phase === "sending";
        if (isMoved && account !== undefined) {
          const { starts } = windowBounds(ledger.calendar, account.usage.windows.at);
          const mc = windows.mc.map((amount, place) => (windows.at >= (starts[place] ?? 0) ? amount : 0));
          putUsage(ledger, account, { windows: { at: account.usage.windows.at, mc } });
        }
        return reply;
      }),
  },
  {
    fault: "a refund gives back to every window",
    complaint: "of agent",
    domain: () =>
      judging((ledger, command, now) => {
        const was = "agentId" in command ? ledger.accounts.get(command.agentId) : undefined;
        const spentMc = was?.usage.spentMc ?? 0;
        const reply = judge(ledger, command, now);
        const is = was === undefined ? undefined : ledger.accounts.get(was.agentId);
        if (command.kind !== "book" || is === undefined) return reply;
        const { at, mc } = is.usage.windows;
        const givenMc = spentMc - is.usage.spentMc;
        const year = Math.max(...mc);
        putUsage(ledger, is, {
          windows: { at, mc: mc.map((amount) => (amount === year ? amount : amount - givenMc)) },
        });
        return reply;
      }),
  },
  {
    fault: "an increase does not end",
    complaint: "what denied a payment",
    domain: () =>
      after(({ command, ledger }) => {
        if (command.kind !== "grant_raise") return;
        for (const account of ledger.accounts.values()) account.policy = prolonged(account.policy);
      }),
  },
  {
    fault: "a roll-over forgets increases",
    complaint: "what denied a payment",
    domain: () => ({
      judge,
      pack: packLedger,
      unpack: (packed) => {
        const ledger = unpackLedger(packed);
        for (const account of ledger.accounts.values()) {
          const { increases: _forgotten, ...policy } = account.policy;
          account.policy = policy;
        }
        return ledger;
      },
    }),
  },
  {
    fault: "a repeated grant raises again",
    complaint: "a repeated grant",
    domain: () =>
      after(({ command, is }) => {
        if (command.kind === "grant_raise" && is !== undefined) is.grant = null;
      }),
  },
  {
    fault: "days follow the clock back",
    complaint: "the day of",
    domain: () => {
      let newest = 0;
      return judging((ledger, command, now) => {
        if (now < newest - DAY) reset(ledger, DAYS);
        newest = Math.max(newest, now);
        return judge(ledger, command, now);
      });
    },
  },
];
