import { type ContainerDocument, rulesRevisionOf } from "../../../src/store/documents.ts";
import { usedCents } from "../../../src/domain/money.ts";
import { withoutEnded } from "../../../src/domain/ledger/increases.ts";
import { NO_CAP } from "../../../src/domain/ledger/state.ts";
import type { LevelSnapshot } from "../../../src/messages/ledger.ts";
import type { LedgerSource, ProjectSources } from "./sources.ts";
import { ADVICE, type Difference } from "./difference.ts";
import { cents } from "../../../src/rails/findings.ts";

type Found = Pick<Difference, "kind" | "of" | "id" | "what" | "expected" | "found" | "advice"> &
  Partial<Pick<Difference, "repair" | "mayBeInFlight" | "steady">>;

/**
 * Compares a project's ledger with itself, and with the records of its project and teams. The ledger was read first.
 */
export function compareProject(sources: ProjectSources): readonly Difference[] {
  const { projectId } = sources;
  const location = { agentId: null, projectId };
  return findingsOf(sources).map((found) => ({ repair: null, mayBeInFlight: false, ...found, ...location }));
}

function findingsOf(sources: ProjectSources): Found[] {
  const { ledger, projectId } = sources;
  const ofLedger = { of: "project", id: projectId, what: "the project's ledger", found: "none" } as const;
  if (ledger === "lost")
    return [{ ...ofLedger, kind: "ledger_lost", expected: "running", advice: ADVICE.lostLedger }];
  if (ledger === "silent") {
    const silent = { kind: "ledger_silent", expected: "an answer", advice: ADVICE.silentLedger } as const;
    return [{ ...ofLedger, ...silent, mayBeInFlight: true }];
  }
  return [
    ...ledger.levels.flatMap((level) => compareContainer(sources, level)),
    ...compareTotals(sources, ledger),
  ];
}

const named = (
  projectId: string,
  { teamId }: Pick<LevelSnapshot, "teamId">,
): { readonly of: "project" | "team"; readonly id: string } =>
  teamId === null ? { of: "project", id: projectId } : { of: "team", id: teamId };

/**
 * Compares the usage under a cap with the accounts under it, as the ledger had both at the same time, and with the
 * records of agents whose account was dropped.
 */
function compareTotals({ droppedMc, projectId }: ProjectSources, { levels }: LedgerSource): Found[] {
  const ofProject = [...droppedMc.values()].reduce((sum, spent) => sum + spent, 0);
  return levels.flatMap((level): Found[] => {
    const { accounts, teamId, totals } = level;
    const dropped = teamId === null ? ofProject : (droppedMc.get(teamId) ?? 0);
    const spent = accounts.spentMc + dropped;
    if (totals.spentMc === spent && totals.reservedMc === accounts.reservedMc) return [];
    const subject = named(projectId, level);
    return [
      {
        ...subject,
        kind: "totals_differ",
        what: `what was used under the ${subject.of}, to the sum over its agents`,
        expected: `${cents(usedCents(spent))} spent, ${cents(usedCents(accounts.reservedMc))} held`,
        found: `${cents(usedCents(totals.spentMc))} spent, ${cents(usedCents(totals.reservedMc))} held`,
        advice: ADVICE.totals,
        steady: `${String(totals.spentMc - spent)} ${String(totals.reservedMc - accounts.reservedMc)}`,
      },
    ];
  });
}

/**
 * Compares a container's record with its level. The record follows the ledger's caps, and its version of the rules may
 * be ahead of the ledger's.
 */
function compareContainer({ project, projectId, teams }: ProjectSources, level: LevelSnapshot): Found[] {
  const subject = named(projectId, level);
  const record = level.teamId === null ? project : (teams.find(({ _id }) => _id === level.teamId) ?? null);
  if (record === null) {
    const what = `the ${subject.of}'s record`;
    const lost = { expected: "one, since the ledger has money under it", found: "none" };
    return [{ ...subject, ...lost, what, kind: "container_record_differs", advice: ADVICE.lostAgent }];
  }
  return [...compareCap(subject, projectId, level, record), ...compareRules(subject, level, record)];
}

type Subject = ReturnType<typeof named>;

function compareCap(
  subject: Subject,
  projectId: string,
  level: LevelSnapshot,
  record: ContainerDocument,
): Found[] {
  const { cap, recordedCapVersion, teamId } = level;
  const shown = record.cap ?? NO_CAP;
  const now = Date.now();
  const textOf = (each: typeof cap): string => {
    const { capCents, increases = [], spendLimits = [], version } = withoutEnded(each, now);
    return [
      capCents === null ? "none" : cents(capCents),
      ...spendLimits.map(({ limitCents, period }) => `${cents(limitCents)} a ${period}`),
      ...increases.map(({ cents: more, limit }) => `${cents(more)} more a ${limit}`),
      `version ${String(version)}`,
    ].join(", ");
  };
  if (textOf(shown) === textOf(cap)) return [];
  const isAhead = shown.version > cap.version;
  return [
    {
      ...subject,
      kind: "container_record_differs",
      what: `the cap in the ${subject.of}'s record`,
      expected: textOf(cap),
      found: textOf(shown),
      advice: isAhead ? ADVICE.ahead : ADVICE.repair,
      mayBeInFlight: isAhead || shown.version >= recordedCapVersion,
      repair: isAhead ? null : { kind: "cap", projectId, recorded: { teamId, cap } },
    },
  ];
}

function compareRules(subject: Subject, { rulesVersion }: LevelSnapshot, record: ContainerDocument): Found[] {
  const shown = rulesRevisionOf(record);
  if (shown >= rulesVersion) return [];
  return [
    {
      ...subject,
      kind: "container_record_differs",
      what: `the version of the rules and restrictions in the ${subject.of}'s record`,
      expected: `${String(rulesVersion)} at the least`,
      found: String(shown),
      advice: ADVICE.rules,
    },
  ];
}
