import { type Domain, realDomain } from "../../../lab/simulation/domain.ts";
import { withAnyRecord } from "../../../lab/mutants/ledger-faults.ts";
import { handle } from "../../../src/domain/agent/handle.ts";
import { judge } from "../../../src/domain/ledger/judge.ts";
import { raiseBasis } from "../../../src/domain/ledger/raises.ts";
import { usedCents } from "../../../src/domain/money.ts";
import { NO_TOTALS } from "../../../src/domain/ledger/state.ts";
import {
  after,
  before,
  changeAccount,
  granting,
  increased,
  judging,
  lateCaps,
  PAYING,
  put,
  raised,
  readBeforeAwait,
  rollingOver,
  under,
} from "./faulty-domains.ts";

/** A fault in the domain that the simulation's auditor must notice. */
export interface SimulationFault {
  readonly fault: string;
  /** What the auditor says of it, in part, so that it is noticed for what it is. */
  readonly complaint: string;
  /** Comes to it soonest, of some that were tried. */
  readonly seed?: number;
  /** Made anew for each run: some remember. */
  readonly domain: () => Domain;
}

/** Slips of the hand, and what the simulation of the design before this one had found: how many parts it takes is another matter. */
export const simulationFaults: readonly SimulationFault[] = [
  {
    fault: "a team's cap lets one cent more through",
    complaint: "a payment of",
    seed: 2,
    domain: () => judging(under(PAYING, (level, teamId) => (teamId === null ? level : raised(level, 1)))),
  },
  {
    fault: "the project's cap lets one cent more through",
    complaint: "a payment of",
    seed: 6,
    domain: () => judging(under(PAYING, (level, teamId) => (teamId === null ? raised(level, 1) : level))),
  },
  {
    fault: "limits by period of team and project are not checked",
    complaint: "a payment of",
    domain: () =>
      judging(under(PAYING, ({ cap: { spendLimits: _unchecked, ...cap }, ...level }) => ({ ...level, cap }))),
  },
  {
    fault: "what is used of the caps is read before an await",
    complaint: "a payment of",
    seed: 2,
    domain: () => judging(readBeforeAwait()),
  },
  {
    fault: "a payment is judged by caps that were replaced",
    complaint: "a payment of",
    domain: () => judging(lateCaps()),
  },
  {
    fault: "a cap that is set later does not count what was spent before",
    complaint: "the totals of",
    domain: () =>
      after((ledger, { kind }) => {
        if (kind === "replace_project") ledger.project = { ...ledger.project, totals: NO_TOTALS };
      }),
  },
  {
    fault: "a replaced budget keeps its version",
    complaint: "the cap of the project",
    domain: () =>
      judging((ledger, command, now) => {
        const { version } = ledger.project.cap;
        const reply = judge(ledger, command, now);
        ledger.project = { ...ledger.project, cap: { ...ledger.project.cap, version } };
        return reply;
      }),
  },
  {
    fault: "an agent's changed budget leaves its team's version",
    complaint: "the cap of team",
    seed: 2,
    domain: () =>
      judging((ledger, command, now) => {
        const teams = new Map(ledger.teams);
        const reply = judge(ledger, command, now);
        if (command.kind === "change_policy")
          put(ledger, (teamId) => (teamId === null ? undefined : teams.get(teamId)));
        return reply;
      }),
  },
  {
    fault: "a team's budget reaches none of its agents",
    complaint: "the version of the policy of",
    seed: 2,
    domain: () =>
      before((_ledger, command) => (command.kind === "replace_team" ? { ...command, agents: [] } : command)),
  },
  {
    fault: "what is released is not given back to the team",
    complaint: "the totals of team",
    domain: () =>
      judging((ledger, command, now) => {
        const teams = new Map(ledger.teams);
        const reply = judge(ledger, command, now);
        if (["deny", "cancel", "expire"].includes(command.kind))
          put(ledger, (teamId) => {
            const [was, is] = [teams.get(teamId ?? ""), ledger.teams.get(teamId ?? "")];
            return was === undefined || is === undefined ? undefined : { ...is, totals: was.totals };
          });
        return reply;
      }),
  },
  {
    fault: "what is checked again on approval is held against itself",
    complaint: "the approval of",
    seed: 8,
    domain: () =>
      judging((ledger, command, now) => {
        if (command.kind !== "approve") return judge(ledger, command, now);
        const open = ledger.accounts.get(command.agentId)?.open.get(command.transactionId);
        const own = usedCents(open?.payment.request.amountMc ?? 0);
        return under(["approve"], (level) => raised(level, -own))(ledger, command, now);
      }),
  },
  {
    fault: "an approval is not checked against the caps again",
    complaint: "the approval of",
    seed: 8,
    domain: () =>
      judging(under(["approve"], (level) => ({ ...level, cap: { ...level.cap, capCents: null } }))),
  },
  {
    fault: "a request that comes again is judged again",
    complaint: "the answer to a request that came again",
    domain: () =>
      before((_ledger, command) => {
        const { requestId: _forgotten, ...rest } = command;
        return rest;
      }),
  },
  {
    fault: "a closed payment's key is forgotten without a word",
    complaint: "a known key was answered decided",
    seed: 1,
    domain: () => after(({ keys }) => keys.byAgent.clear()),
  },
  {
    fault: "an outcome of the rail is dropped",
    complaint: "the totals of",
    domain: () =>
      before((_ledger, command) => (command.kind === "confirm" ? { ...command, outcome: null } : command)),
  },
  {
    fault: "a paused agent's payment is sent",
    complaint: "permission to send",
    seed: 1,
    domain: () =>
      judging((ledger, command, now) => {
        const reply = judge(ledger, command, now);
        if (reply.kind !== "permission" || reply.permission.kind !== "wait") return reply;
        return { ...reply, permission: { kind: "send", permit: reply.permission.fence } };
      }),
  },
  {
    fault: "a pause does not say what is to be fenced",
    complaint: "what a pause fences",
    seed: 1,
    domain: () =>
      judging((ledger, command, now) => {
        const reply = judge(ledger, command, now);
        return reply.kind === "account_status" ? { ...reply, fence: null } : reply;
      }),
  },
  {
    fault: "an approval by older restrictions is taken",
    complaint: "an approval that was judged by old restrictions",
    domain: () =>
      judging((ledger, command, now) => {
        const account = "agentId" in command ? ledger.accounts.get(command.agentId) : undefined;
        if (command.kind !== "approve" || account === undefined) return judge(ledger, command, now);
        const rulesVersions = {
          project: ledger.project.rulesVersion,
          team: ledger.teams.get(account.teamId)?.rulesVersion ?? 0,
          agent: account.rulesVersion,
        };
        return judge(ledger, { ...command, rulesVersions }, now);
      }),
  },
  {
    fault: "another change takes the revision that is reserved for a charge",
    complaint: "was written as two things",
    seed: 3,
    domain: () =>
      judging((ledger, command, now) => {
        const account = () => ledger.accounts.get("agentId" in command ? command.agentId : "");
        const { foreseenSequence = 0, revision = 0 } = account() ?? {};
        const reply = judge(ledger, command, now);
        const is = account();
        if (is !== undefined && foreseenSequence > 0 && is.revision === revision + 2) is.revision -= 1;
        return reply;
      }),
  },
  {
    fault: "a revoked key pays on",
    complaint: "a dead key's payment",
    seed: 6,
    domain: () =>
      judging((ledger, command, now) =>
        command.kind === "follow_agent" && command.keyId === null && !command.isArchived
          ? { kind: "followed", ended: [] }
          : judge(ledger, command, now),
      ),
  },
  {
    fault: "the ledger does not receive an archive",
    complaint: "the status of",
    seed: 3,
    domain: () =>
      judging((ledger, command, now) =>
        command.kind === "follow_agent" && command.isArchived
          ? { kind: "followed", ended: [] }
          : judge(ledger, command, now),
      ),
  },
  {
    fault: "the actor of an archived agent says that nothing is to be followed",
    complaint: "an archive was answered before the ledger had received it",
    domain: () => ({
      ...realDomain,
      handle: (state, command, now) => {
        const reply = handle(state, command, now);
        if (command.kind === "archive") state.followedRevision = state.revision;
        return reply;
      },
    }),
  },
  {
    fault: "payments are judged by rules that were replaced",
    complaint: "a payment that was judged by old rules",
    seed: 1,
    domain: () =>
      before((ledger, command) => {
        if (command.kind === "pay") ledger.project = { ...ledger.project, rulesVersion: 0 };
        return command;
      }),
  },
  {
    fault: "a clock that goes back over midnight begins the day anew",
    complaint: "when it was decided",
    seed: 15,
    domain: () =>
      before((ledger, command, now) => {
        if (command.kind !== "pay") return command;
        const date = new Date(now).toISOString().slice(0, 10);
        changeAccount(ledger, command.agentId, (account) => {
          const { day } = account.usage;
          if (day.date <= date) return account;
          return { ...account, usage: { ...account.usage, day: { date, amountMc: 0, count: 0 } } };
        });
        return command;
      }),
  },
  {
    fault: "an increase does not end",
    complaint: "a payment of",
    seed: 20,
    domain: () => increased((increases) => increases.map((each) => ({ ...each, endsAt: Infinity }))),
  },
  {
    fault: "an increase is counted twice",
    complaint: "a payment of",
    domain: () => increased((increases) => [...increases, ...increases]),
  },
  {
    fault: "an increase ends before the window that lacks room",
    complaint: "that are raised",
    domain: () => granting((command, _ledger, now) => ({ endsAt: now + 60_000, ...command })),
  },
  {
    fault: "a raise is granted on limits that were set since",
    complaint: "a grant on limits that were set since",
    seed: 1,
    domain: () =>
      granting((command, ledger) => {
        const account = ledger.accounts.get(command.agentId);
        const isRepeated = account?.grant?.raiseId === command.raiseId;
        if (account === undefined || isRepeated) return command;
        return { ...command, basis: raiseBasis(ledger, account) };
      }),
  },
  {
    fault: "a roll-over forgets the caps",
    complaint: "continue-as-new lost something of the ledger",
    domain: () =>
      rollingOver((ledger) => {
        ledger.project = { ...ledger.project, cap: { ...ledger.project.cap, capCents: null } };
      }),
  },
  {
    fault: "a roll-over forgets the idempotency keys",
    complaint: "continue-as-new lost something of the ledger",
    domain: () => rollingOver(({ keys }) => keys.byAgent.clear()),
  },
  {
    fault: "what a network reports of a closed payment is dropped",
    complaint: "whether a report changed",
    seed: 1,
    domain: () =>
      judging((ledger, command, now) => {
        if (command.kind !== "book" || command.closed === undefined) return judge(ledger, command, now);
        return { kind: "payment", changed: false, payment: command.closed };
      }),
  },
  {
    fault: "what a network forces above a limit is not flagged",
    complaint: "the breaches of",
    seed: 1,
    domain: () =>
      judging((ledger, command, now) => {
        const reply = judge(ledger, command, now);
        if (command.kind !== "book" || reply.kind !== "payment" || reply.payment.books === null) return reply;
        const books = { ...reply.payment.books, breaches: [] };
        return { ...reply, payment: { ...reply.payment, books } };
      }),
  },
  {
    fault: "a closed payment is taken back as an old record has it",
    complaint: "whether a report changed",
    seed: 7,
    domain: () =>
      before((ledger, command) => (command.kind === "book" ? withAnyRecord(ledger, command) : command)),
  },
  {
    fault: "nothing is ever swept",
    complaint: "what is open for ever of",
    seed: 12,
    domain: () =>
      after((ledger) => {
        // As if all were confirmed that was decided.
        for (const account of ledger.accounts.values())
          for (const [id, open] of account.open)
            account.open.set(id, { ...open, confirmedRevision: open.payment.revision });
      }),
  },
];
