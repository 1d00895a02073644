import { lifecycleEventId } from "../../src/domain/events.ts";
import type { LedgerCommand } from "../../src/domain/ledger/commands.ts";
import { judge } from "../../src/domain/ledger/judge.ts";
import type { Ledger } from "../../src/domain/ledger/state.ts";
import type { LedgerDomain } from "../../test/domain/ledger/world.ts";
import {
  replyingOtherwise,
  accountOf,
  after,
  before,
  judging,
  judgingAs,
  put,
  putOpen,
  putUsage,
  unbounded,
} from "./ledger-faults.ts";
import type { Mutant } from "./mutant.ts";

type LedgerMutant = Mutant<LedgerDomain>;

const closing: readonly LedgerMutant[] = [
  {
    fault: "closing leaves what is on hold",
    complaint: "a closed account",
    domain: () =>
      judging((ledger, command, now) => {
        if (command.kind !== "follow_agent" || !command.isArchived) return judge(ledger, command, now);
        judge(ledger, { ...command, isArchived: false, keyId: null }, now);
        const account = accountOf(ledger, command);
        if (account !== undefined) put(ledger, account, { status: "closed", pausedAt: null });
        return { kind: "followed", ended: [] };
      }),
  },
  {
    fault: "closing denies what is on hold and keeps its hold",
    complaint: "the totals of agent-",
    domain: () =>
      after(({ command, is, ledger, was }) => {
        if (command.kind !== "follow_agent" || is === undefined || was === undefined) return;
        putUsage(ledger, is, { reservedMc: was.usage.reservedMc });
      }),
  },
  {
    fault: "closing calls expired payments denied",
    complaint: "what was on hold of a closed account",
    seed: 2,
    domain: () =>
      after(({ command, is, ledger, reply }) => {
        for (const id of command.kind === "follow_agent" && reply.kind === "followed" ? reply.ended : []) {
          const payment = is?.open.get(id)?.payment;
          if (is !== undefined && payment !== undefined)
            putOpen(ledger, is, id, { payment: { ...payment, status: "denied" } });
        }
      }),
  },
  {
    fault: "a closed account pays",
    complaint: "a payment without an account",
    domain: () =>
      judgingAs(["pay"], ({ keyId, status }, command) =>
        status === "closed"
          ? { status: "active", keyId: command.kind === "pay" ? command.keyId : keyId }
          : {},
      ),
  },
  {
    fault: "a closed account keeps its key",
    complaint: "status and key of",
    domain: () =>
      after(({ command, is, ledger, was }) => {
        if (command.kind === "follow_agent" && command.isArchived && is !== undefined)
          put(ledger, is, { keyId: was?.keyId ?? null });
      }),
  },
  {
    fault: "resuming brings a closed account back",
    complaint: "resume of none",
    domain: () => judgingAs(["resume"], ({ status }) => (status === "closed" ? { status: "paused" } : {})),
  },
  {
    fault: "an account is dropped while something of it is on hold",
    complaint: "gone",
    domain: () =>
      after(({ command, is, ledger }) => {
        if (command.kind === "follow_agent" && is?.status === "closed") ledger.accounts.delete(is.agentId);
      }),
  },
];

const keys: readonly LedgerMutant[] = [
  {
    fault: "a dead key pays",
    complaint: "a payment by another key",
    domain: () =>
      before((ledger, command) => {
        const keyId = accountOf(ledger, command)?.keyId ?? null;
        return command.kind === "pay" && keyId !== null ? { ...command, keyId } : undefined;
      }),
  },
  {
    fault: "a revoked key pays until there is another",
    complaint: "a payment by another key",
    domain: () =>
      judgingAs(["pay"], ({ keyId }, command) =>
        keyId === null && command.kind === "pay" ? { keyId: command.keyId } : {},
      ),
  },
  {
    fault: "an older word of the agent's actor is believed",
    complaint: "status and key of",
    domain: () =>
      before((ledger, command) => {
        const account = accountOf(ledger, command);
        if (command.kind !== "follow_agent" || account === undefined) return;
        return { ...command, revision: Math.max(command.revision, account.followedRevision + 1) };
      }),
  },
];

const stop: readonly LedgerMutant[] = [
  {
    fault: "a paused agent's payment is sent",
    complaint: "permission to send",
    domain: () => judgingAs(["request_permission"], () => ({ status: "active" })),
  },
  {
    fault: "a payment decided before the pause goes on after the emergency stop",
    complaint: "is withdrawn",
    domain: () =>
      after(({ is }) => {
        for (const [id, { isWithdrawn: _is, ...open }] of is?.open ?? []) is?.open.set(id, open);
      }),
  },
  {
    fault: "a revocation is the emergency stop though the agent goes on",
    complaint: "is withdrawn",
    domain: () =>
      judgingAs(["follow_agent"], ({ status }, command) =>
        status === "active" && command.kind === "follow_agent" && !command.isArchived
          ? { status: "paused" }
          : {},
      ),
  },
  {
    fault: "a pause is no emergency stop though the key was revoked before",
    complaint: "is withdrawn",
    seed: 26,
    domain: () => judgingAs(["pause"], ({ keyId }) => (keyId === null ? { keyId: "some key" } : {})),
  },
  {
    fault: "a pause does not say what is to be fenced",
    complaint: "what the pause of",
    domain: () =>
      replyingOtherwise((reply) => (reply.kind === "account_status" ? { ...reply, fence: null } : reply)),
  },
  {
    fault: "a permit of before the pause passes its fence",
    complaint: "whether a fence is above all permits",
    domain: () =>
      replyingOtherwise((reply) =>
        reply.kind === "account_status" && reply.fence !== null
          ? { ...reply, fence: { ...reply.fence, fence: reply.fence.fence - 1 } }
          : reply,
      ),
  },
];

const records: readonly LedgerMutant[] = [
  {
    fault: "pausing what is paused fires again",
    complaint: "pause of",
    domain: () => judgingAs(["pause"], ({ status }) => (status === "paused" ? { status: "active" } : {})),
  },
  {
    fault: "a pause is not published",
    complaint: "what is published of",
    domain: () =>
      after(({ command, is, ledger, was }) => {
        if (command.kind === "pause" && is !== undefined && was !== undefined)
          put(ledger, is, { outbox: was.outbox });
      }),
  },
  {
    fault: "a pause is published twice",
    complaint: "what is published of",
    domain: () =>
      after(({ command, is, ledger, reply }) => {
        const last = is?.outbox.at(-1);
        if (command.kind !== "pause" || reply.kind !== "account_status" || !reply.changed) return;
        if (is !== undefined && last !== undefined)
          put(ledger, is, { outbox: [...is.outbox, { ...last, id: `${last.id} again` }] });
      }),
  },
  {
    fault: "events of an account have one id for each type",
    complaint: "what is published under",
    domain: () =>
      after(({ is, ledger }) => {
        if (is === undefined) return;
        const outbox = is.outbox.map((each) => ({ ...each, id: lifecycleEventId(each.type, "account", 0) }));
        put(ledger, is, { outbox });
      }),
  },
  {
    fault: "any confirmation of its record empties the outbox",
    complaint: "what is published of",
    domain: () =>
      after(({ command, ledger }) => {
        if (command.kind !== "confirm_records") return;
        for (const { agentId } of command.records) {
          const account = ledger.accounts.get(agentId);
          if (account !== undefined) put(ledger, account, { outbox: [] });
        }
      }),
  },
  {
    fault: "no confirmation of its record empties the outbox",
    complaint: "what is published of",
    domain: () =>
      judging((ledger, command, now) => {
        const outboxes = [...ledger.accounts.values()].map(
          ({ agentId, outbox }) => [agentId, outbox] as const,
        );
        const reply = judge(ledger, command, now);
        for (const [agentId, outbox] of command.kind === "confirm_records" ? outboxes : []) {
          const account = ledger.accounts.get(agentId);
          if (account !== undefined) put(ledger, account, { outbox });
        }
        return reply;
      }),
  },
  {
    fault: "another change takes the revision that is reserved for a charge",
    complaint: "what one revision of",
    domain: () =>
      after(({ is, was }) => {
        if (is === undefined || was === undefined || was.foreseenSequence === 0) return;
        if (is.revision === was.revision + 2) is.revision -= 1;
      }),
  },
  {
    fault: "a change of the account is shown under its old revision",
    complaint: "shows",
    domain: () =>
      after(({ command, is, was }) => {
        if (command.kind === "change_policy" && is !== undefined && was !== undefined)
          is.revision = was.revision;
      }),
  },
  {
    fault: "a change of the account is not said to who writes the records",
    complaint: "did not say so",
    domain: () =>
      after(({ command, ledger }) => {
        if (command.kind === "confirm") ledger.touched.clear();
      }),
  },
  {
    fault: "a request that comes again is judged again",
    complaint: "what comes again",
    domain: () =>
      before((_ledger, command) => {
        const { requestId: _id, ...rest } = command;
        return rest;
      }),
  },
];

const isFirst = (ledger: Ledger, command: LedgerCommand): boolean =>
  accountOf(ledger, command)?.open.size === 0;

const bounds: readonly LedgerMutant[] = [
  {
    fault: "more accounts are opened than there may be",
    complaint: "more accounts than there may be",
    domain: () => unbounded({ accounts: 1_000 }),
  },
  {
    fault: "accounts are opened whatever the ledger weighs",
    complaint: "an account beyond the ledger's weight",
    domain: () => unbounded({ openedBelowBytes: 1_000_000 }),
  },
  {
    fault: "payments are accepted whatever the ledger weighs",
    complaint: "a payment beyond the ledger's weight",
    seed: 3,
    domain: () => unbounded({ paidBelowBytes: 1_000_000 }, isFirst),
  },
  {
    fault: "an agent takes all that is left of the ledger's weight",
    complaint: "share of the ledger's weight",
    domain: () => unbounded({ paidBelowBytes: 1_000_000 }, (...asked) => !isFirst(...asked)),
  },
  {
    fault: "people resolve whatever the ledger weighs",
    complaint: "a resolution without room for it",
    domain: () => unbounded({ resolvedBelowBytes: 1_000_000 }),
  },
  {
    fault: "more payments of an agent are open than may be",
    complaint: "more payments of",
    domain: () => unbounded({ openOfAgent: 1_000 }),
  },
  {
    fault: "more payments of a project are open than may be",
    complaint: "more payments are open",
    domain: () => unbounded({ openOfProject: 1_000 }, isFirst),
  },
  {
    fault: "an agent takes all that is left of its project's payments",
    complaint: "share of its project",
    domain: () => unbounded({ partsOfRest: 0 }),
  },
  {
    fault: "keys are remembered without end",
    complaint: "more keys are remembered",
    domain: () => unbounded({ closedKeys: 1_000 }),
  },
  {
    fault: "open payments are counted and never uncounted",
    complaint: "how many payments are open",
    domain: () =>
      after(({ is, ledger, was }) => {
        if (is !== undefined && was !== undefined && is.open.size < was.open.size) ledger.openPayments += 1;
      }),
  },
  {
    fault: "the weight of a payment is added and never taken away",
    complaint: "the weight of all accounts",
    domain: () =>
      judging((ledger, command, now) => {
        const { weightBytes } = ledger;
        const reply = judge(ledger, command, now);
        ledger.weightBytes = Math.max(ledger.weightBytes, weightBytes);
        return reply;
      }),
  },
  {
    fault: "an account that is gone still weighs",
    complaint: "the weight of all accounts",
    domain: () =>
      judging((ledger, command, now) => {
        const { droppedAccounts } = ledger;
        const reply = judge(ledger, command, now);
        ledger.weightBytes += 110 * (ledger.droppedAccounts - droppedAccounts);
        return reply;
      }),
  },
];

/** Faults in accounts: their end, their keys, the emergency stop, what is published of them, and how much there may be. */
export const accountMutants: readonly LedgerMutant[] = [...closing, ...keys, ...stop, ...records, ...bounds];
