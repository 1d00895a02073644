import type { OperationId } from "../contract/registry.ts";
import type { ChangeKind, IdKind } from "../contract/stream.ts";

/** Actions of audit entries that publish a change, by kind; the entry names the changed record. */
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
  // Followed by their own records.
  raiseRequests: [],
};

/** Actions of the service itself: an endpoint that failed too often is disabled. */
const BY_THE_SERVICE: Readonly<Record<string, readonly IdKind[]>> = { disableWebhook: ["webhooks"] };

const kindsOf = new Map<string, IdKind[]>(
  Object.entries(BY_THE_SERVICE).map(([action, kinds]) => [action, [...kinds]]),
);
for (const kind of Object.keys(PUBLISHED_BY) as IdKind[]) {
  for (const action of PUBLISHED_BY[kind]) kindsOf.set(action, [...(kindsOf.get(action) ?? []), kind]);
}

export const PUBLISHED_ACTIONS: readonly string[] = [...kindsOf.keys()];

export const kindsPublishedBy = (action: string): readonly IdKind[] => kindsOf.get(action) ?? [];

/** Minimum interval between events of a kind, and maximum ids per event. */
interface Throttle {
  readonly everyMs: number;
  readonly atOnce: number;
}

/** Throttle of changes that people wait for. Frequent changes wait longer: each event goes to all open pages. */
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

/** Interval for agents of which only totals changed, as they do with each payment. */
const TOTALS_EVERY_MS = 5_000;

export const throttleOf = (kind: ChangeKind, isMinor: boolean): Throttle =>
  isMinor ? { ...THROTTLES[kind], everyMs: TOTALS_EVERY_MS } : THROTTLES[kind];
