import type { OperationId } from "../contract/registry.ts";
import type { ChangeKind, IdKind } from "../contract/stream.ts";

/** The kinds of changes that audit entries publish, by action; an entry names what was changed. */
const PUBLISHED_BY: Readonly<Record<IdKind, readonly OperationId[]>> = {
  projects: [
    "createProject",
    "updateProject",
    "archiveProject",
    "setProjectBudget",
    "setProjectCalendar",
    "setProjectApprovalRules",
    "setProjectRestrictions",
  ],
  teams: [
    "createTeam",
    "updateTeam",
    "archiveTeam",
    "setTeamBudget",
    "setTeamApprovalRules",
    "setTeamRestrictions",
  ],
  members: ["updateMember", "removeMember", "acceptInvite"],
  invites: ["createInvite", "revokeInvite", "acceptInvite"],
  organization: ["updateOrganization", "setSso", "removeSso"],
  organizationKeys: ["mintOrganizationKey", "rotateOrganizationKey", "revokeOrganizationKey"],
  webhooks: ["createWebhook", "updateWebhook", "deleteWebhook", "rotateWebhookSecret", "replayWebhook"],
  // Their records are followed.
  raiseRequests: [],
};

/** An endpoint that failed too often is disabled by the service itself. */
const BY_THE_SERVICE: Readonly<Record<string, readonly IdKind[]>> = { disableWebhook: ["webhooks"] };

const kindsOf = new Map<string, IdKind[]>(
  Object.entries(BY_THE_SERVICE).map(([action, kinds]) => [action, [...kinds]]),
);
for (const kind of Object.keys(PUBLISHED_BY) as IdKind[]) {
  for (const action of PUBLISHED_BY[kind]) kindsOf.set(action, [...(kindsOf.get(action) ?? []), kind]);
}

/** Actions of the audit log that are published. */
export const PUBLISHED_ACTIONS: readonly string[] = [...kindsOf.keys()];

/** The kinds that an entry of the audit log publishes. */
export const kindsPublishedBy = (action: string): readonly IdKind[] => kindsOf.get(action) ?? [];

/** Throttle of a kind's events: minimum interval, and ids per event. */
interface Throttle {
  readonly everyMs: number;
  readonly atOnce: number;
}

/**
 * Changes that a person waits for are published at once, frequent ones less often: each event goes to every open
 * page.
 */
const AT_ONCE: Throttle = { everyMs: 200, atOnce: 50 };
const THROTTLES: Readonly<Record<ChangeKind, Throttle>> = {
  approvals: AT_ONCE,
  agents: AT_ONCE,
  transactions: { everyMs: 1_000, atOnce: 20 },
  budgets: AT_ONCE,
  projects: AT_ONCE,
  teams: AT_ONCE,
  members: AT_ONCE,
  invites: AT_ONCE,
  organization: AT_ONCE,
  organizationKeys: AT_ONCE,
  webhooks: AT_ONCE,
  raiseRequests: AT_ONCE,
};

/** Interval for agents of which totals alone changed, as they do with each payment. */
const TOTALS_EVERY_MS = 5_000;

export const throttleOf = (kind: ChangeKind, isMinor: boolean): Throttle =>
  isMinor ? { ...THROTTLES[kind], everyMs: TOTALS_EVERY_MS } : THROTTLES[kind];
