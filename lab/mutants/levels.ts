import { noClosedKeys } from "../../src/domain/ledger/closed-keys.ts";
import { judge } from "../../src/domain/ledger/judge.ts";
import type { LedgerCommand } from "../../src/domain/ledger/commands.ts";
import { type Account, levelOf, NO_CAP, NO_TOTALS } from "../../src/domain/ledger/state.ts";
import { usedCents } from "../../src/domain/money.ts";
import type { LedgerDomain } from "../../test/domain/ledger/world.ts";
import {
  accountOf,
  addTotals,
  after,
  before,
  judging,
  losingOfAccounts,
  losingOfLevels,
  losingOfOpen,
  onRelease,
  put,
  putLevel,
  putUsage,
  readBeforeAwait,
  rollingOver,
  underCaps,
} from "./ledger-faults.ts";
import type { Mutant } from "./mutant.ts";

type LedgerMutant = Mutant<LedgerDomain>;

const PAYING = ["pay", "approve"] as const;

/** Faults over the three levels: slips of the hand, and what was found where the levels were kept apart. */
const caps: readonly LedgerMutant[] = [
  {
    fault: "a team's cap lets one cent more through",
    complaint: "TEAM_CAP_EXCEEDED",
    domain: () => underCaps(PAYING, (level, cents) => (level === "team" ? cents + 1 : cents)),
  },
  {
    fault: "the project's cap lets one cent more through",
    complaint: "PROJECT_CAP_EXCEEDED",
    seed: 13,
    domain: () => underCaps(PAYING, (level, cents) => (level === "project" ? cents + 1 : cents)),
  },
  {
    fault: "a cap refuses what fills it",
    complaint: "CAP_EXCEEDED",
    seed: 2,
    domain: () => underCaps(PAYING, (_level, cents) => cents - 1),
  },
  {
    fault: "the project's totals are read before an await",
    complaint: "PROJECT_CAP_EXCEEDED",
    domain: () => judging(readBeforeAwait()),
  },
  {
    fault: "a team's totals are not counted while it has no cap",
    complaint: "the totals of team-",
    domain: () => uncounted("team"),
  },
  {
    fault: "the project's totals are not counted while it has no cap",
    complaint: "the totals of the project",
    domain: () => uncounted("project"),
  },
  {
    fault: "what is released stays held by the agent",
    complaint: "the totals of agent-",
    domain: () =>
      onRelease((ledger, account, mc) => {
        putUsage(ledger, account, { reservedMc: account.usage.reservedMc + mc });
      }),
  },
  {
    fault: "what is released stays held under the team's cap",
    complaint: "the totals of team-",
    domain: () => onRelease((ledger, { teamId }, mc) => addTotals(ledger, teamId, 0, mc)),
  },
  {
    fault: "what is released stays held under the project's cap",
    complaint: "the totals of the project",
    domain: () => onRelease((ledger, _account, mc) => addTotals(ledger, null, 0, mc)),
  },
  {
    fault: "what is settled is spent by the agent and stays held under the project's cap",
    complaint: "the totals of the project",
    domain: () =>
      after(({ is, ledger, was }) => {
        const spent = (is?.usage.spentMc ?? 0) - (was?.usage.spentMc ?? 0);
        if (is !== undefined && spent > 0) addTotals(ledger, null, -spent, spent);
      }),
  },
  {
    fault: "a closed account takes what it has spent with it",
    complaint: "the totals of",
    domain: () =>
      after(({ command, is, ledger }) => {
        if (command.kind === "follow_agent" && command.isArchived && is !== undefined)
          addTotals(ledger, null, -is.usage.spentMc, 0);
      }),
  },
  {
    fault: "what is checked again on approval is held against itself",
    complaint: "what is approved, by its limits",
    domain: () =>
      underCaps(["approve"], (_level, cents, ledger, command) => {
        const id = command.kind === "approve" ? command.transactionId : "";
        const ownMc = accountOf(ledger, command)?.open.get(id)?.payment.request.amountMc ?? 0;
        return cents - usedCents(ownMc);
      }),
  },
  {
    fault: "an approval is not put to the caps again",
    complaint: "what is approved, by its limits",
    domain: () => underCaps(["approve"], () => null),
  },
  {
    fault: "what a cap refused is held under the project's",
    complaint: "the totals of the project",
    domain: () =>
      after(({ command, ledger, reply }) => {
        if (command.kind !== "pay" || reply.kind !== "decided") return;
        if (reply.decision.denial?.code.endsWith("CAP_EXCEEDED") === true)
          addTotals(ledger, null, 0, command.request.amountMc);
      }),
  },
];

function uncounted(level: "team" | "project"): LedgerDomain {
  return judging((ledger, command, now) => {
    const account = accountOf(ledger, command);
    const teamId = level === "team" ? account?.teamId : null;
    if (teamId === undefined) return judge(ledger, command, now);
    const { cap, totals } = teamId === null ? ledger.project : levelOf(ledger, teamId);
    const reply = judge(ledger, command, now);
    if (cap.capCents === null) putLevel(ledger, teamId, { totals });
    return reply;
  });
}

/** Commands of a kind leave the cap of a level, and its version. */
function keepingCap(
  kind: LedgerCommand["kind"],
  levelFor: (account: Account | undefined) => string | null | undefined,
): LedgerDomain {
  return judging((ledger, command, now) => {
    const id = levelFor(accountOf(ledger, command));
    const { cap } = typeof id === "string" ? levelOf(ledger, id) : ledger.project;
    const reply = judge(ledger, command, now);
    if (command.kind === kind && id !== undefined) putLevel(ledger, id, { cap });
    return reply;
  });
}

const replacements: readonly LedgerMutant[] = [
  {
    fault: "a replaced budget of the project leaves its teams' caps",
    complaint: "the caps that are to be in the records",
    domain: () =>
      before((_ledger, command) =>
        command.kind === "replace_project" ? { ...command, teams: [] } : undefined,
      ),
  },
  {
    fault: "a replaced budget of a team leaves its agents' budgets",
    complaint: "the policy of",
    domain: () =>
      judging((ledger, command, now) => {
        const accounts = [...ledger.accounts.values()];
        const reply = judge(ledger, command, now);
        for (const { agentId, policy, policyVersion } of command.kind === "replace_team" ? accounts : []) {
          const account = ledger.accounts.get(agentId);
          if (account !== undefined) put(ledger, account, { policy, policyVersion });
        }
        return reply;
      }),
  },
  {
    fault: "a replaced budget of a team leaves its cap",
    complaint: "the cap of",
    domain: () =>
      judging((ledger, command, now) => {
        if (command.kind !== "replace_team") return judge(ledger, command, now);
        const { capCents } = levelOf(ledger, command.teamId).cap;
        return judge(ledger, { ...command, capCents }, now);
      }),
  },
  {
    fault: "a budget is replaced from a stale version",
    complaint: "a stale budget",
    domain: () =>
      before((ledger, command) => {
        if (command.kind === "replace_project") return { ...command, version: ledger.project.cap.version };
        if (command.kind === "replace_team")
          return { ...command, version: levelOf(ledger, command.teamId).cap.version };
      }),
  },
  {
    fault: "an agent's changed budget leaves its team's version",
    complaint: "the cap of team-",
    domain: () => keepingCap("change_policy", (account) => account?.teamId),
  },
  {
    fault: "a team's changed cap leaves the project's version",
    complaint: "the cap of project",
    domain: () => keepingCap("replace_team", () => null),
  },
  {
    fault: "a replaced budget keeps its version",
    complaint: "the cap of",
    domain: () =>
      after(({ command, ledger, reply }) => {
        if (command.kind !== "replace_project" || reply.kind !== "replaced") return;
        const { capCents, version } = ledger.project.cap;
        ledger.project = { ...ledger.project, cap: { capCents, version: version - 1 } };
      }),
  },
  {
    fault: "a command that breaks off half-way keeps what it had done",
    complaint: "a command that broke off has changed something",
    domain: () =>
      judging((ledger, command, now) => {
        const reply = judge(ledger, command, now);
        if (reply.kind === "failed" && command.kind === "replace_team")
          judge(ledger, { ...command, agents: [] }, now);
        return reply;
      }),
  },
  {
    fault: "a command that breaks off is answered as if it had not",
    complaint: "a command that breaks off",
    domain: () =>
      judging((ledger, command, now) => {
        const reply = judge(ledger, command, now);
        return reply.kind === "failed" ? { kind: "confirmed" } : reply;
      }),
  },
  {
    fault: "payments are judged by rules that were replaced",
    complaint: "a payment by old rules",
    domain: () =>
      before((ledger, command) => {
        const account = accountOf(ledger, command);
        if (command.kind !== "pay" || account === undefined) return;
        const versions = command.request.rulesVersions;
        const rulesVersions = {
          project: Math.max(versions?.project ?? 0, ledger.project.rulesVersion),
          team: Math.max(versions?.team ?? 0, levelOf(ledger, account.teamId).rulesVersion),
          agent: Math.max(versions?.agent ?? 0, account.rulesVersion),
        };
        return { ...command, request: { ...command.request, rulesVersions } };
      }),
  },
  {
    fault: "an older version of the rules is followed",
    complaint: "the version of the rules of",
    domain: () =>
      after(({ command, ledger }) => {
        if (command.kind === "follow_rules")
          putLevel(ledger, command.teamId, { rulesVersion: command.version });
      }),
  },
];

const LOST = "a roll-over lost something";

const losing: readonly (readonly [what: string, domain: () => LedgerDomain])[] = [
  ["the totals of project and teams", () => losingOfLevels(() => ({ totals: NO_TOTALS }))],
  ["the caps", () => losingOfLevels(() => ({ cap: NO_CAP }))],
  ["the versions of rules", () => losingOfLevels(() => ({ rulesVersion: 0 }))],
  ["the versions of agents' restrictions", () => losingOfAccounts(() => ({ rulesVersion: 0 }))],
  [
    "that a cap is not in its record",
    () => losingOfLevels(({ cap }) => ({ recordedCapVersion: cap.version })),
  ],
  [
    "what accounts have used",
    () => losingOfAccounts(({ usage }) => ({ usage: { ...usage, spentMc: 0, reservedMc: 0 } })),
  ],
  ["the hour", () => losingOfAccounts(({ usage }) => ({ usage: { ...usage, counts: [] } }))],
  [
    "the day",
    () =>
      losingOfAccounts(({ usage }) => ({ usage: { ...usage, day: { date: "", amountMc: 0, count: 0 } } })),
  ],
  ["the keys of closed payments", () => rollingOver(() => ({ keys: noClosedKeys() }))],
  ["how far keys are forgotten", () => losingOfAccounts(() => ({ evictedThrough: 0 }))],
  ["first answers", () => rollingOver(() => ({ replies: new Map() }))],
  ["what is open", () => losingOfAccounts(() => ({ open: new Map() }))],
  [
    "that a payment is withdrawn",
    () =>
      losingOfOpen((open) => {
        const { isWithdrawn: _is, ...rest } = open;
        return rest;
      }),
  ],
  ["which effects are done", () => losingOfOpen((open) => ({ ...open, confirmedRevision: 0 }))],
  ["what is not published yet", () => losingOfAccounts(() => ({ outbox: [] }))],
  ["that an agent is paused", () => losingOfAccounts(() => ({ status: "active" }))],
  ["since when an agent is paused", () => losingOfAccounts(() => ({ pausedAt: null }))],
  ["what it has received of the agents", () => losingOfAccounts(() => ({ followedRevision: 0 }))],
  ["the policies' versions", () => losingOfAccounts(() => ({ policyVersion: 1, mirroredPolicyVersion: 1 }))],
  [
    "what wallets mirror",
    () => losingOfAccounts(({ policyVersion }) => ({ mirroredPolicyVersion: policyVersion })),
  ],
  ["how many payments there were", () => losingOfAccounts(({ sequence }) => ({ closed: sequence }))],
  [
    "that a record is to be written",
    () => losingOfAccounts(({ revision }) => ({ confirmedRevision: revision })),
  ],
  ["how many accounts are gone", () => rollingOver(() => ({ droppedAccounts: 0 }))],
];

const rollOvers: readonly LedgerMutant[] = losing.map(([what, domain]) => ({
  fault: `a roll-over forgets ${what}`,
  complaint: LOST,
  domain,
}));

/** Faults over all levels. */
export const levelMutants: readonly LedgerMutant[] = [...caps, ...replacements, ...rollOvers];
