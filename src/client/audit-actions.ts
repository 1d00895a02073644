import type { Operations } from "../contract/registry.ts";
import type { ROUTES } from "./routes.ts";
import type { Item, OperationId } from "./types.ts";

/** The audit log's actions in words, and the outcome of an entry. */

export type AuditEntry = Item<"listAuditLog">;

/** Operations whose calls leave an entry: all that change something, except agents' payments. */
type AuditedOperation = {
  [K in OperationId]: K extends `simulate${string}`
    ? never
    : (typeof ROUTES)[K]["method"] extends "GET"
      ? never
      : Operations[K]["access"]["kind"] extends "agent"
        ? never
        : K;
}[OperationId];

/** Actions without an operation: decisions on payments, the service itself, the operator's commands. */
type OtherAction =
  | "acceptRecords"
  | "bookPayment"
  | "rotateMasterKey"
  | "createOrganization"
  | "decidePayment"
  | "deployWalletFactory"
  | "disableWebhook"
  | "furtherRefusals"
  | "mailInvite"
  | "reconcileRepair"
  | "refusePayment"
  | "resetPassword"
  | "resetSecondFactors"
  | "resolvePayment"
  | "restoreLedger"
  | "setPlan";

export type AuditAction = AuditedOperation | OtherAction;

/** Kinds of resources, keyed by their names in the log. */
export const RESOURCE_KINDS = {
  agent: "Agent",
  team: "Team",
  project: "Project",
  transaction: "Transaction",
  approval: "Approval",
  raise_request: "Raise request",
  user: "Member",
  invite: "Invite",
  organization_key: "Organization key",
  webhook_endpoint: "Webhook endpoint",
  organization: "Organization",
  passkey: "Passkey",
  session: "Session",
  master_key: "Master key",
  wallet_factory: "Wallet factory",
} as const;
export type ResourceKind = keyof typeof RESOURCE_KINDS;

interface ActionWords {
  /** Kinds of the action's resources. */
  readonly on: readonly ResourceKind[];
  /** For example `Paused agent`. */
  readonly done: string;
  /** For example `pause agent`, for an attempt that was refused. */
  readonly tried: string;
}

/** Returns `Paused agent` and `pause agent` for `on("agent", "Paused", "pause", "agent")`. */
const on = (
  kinds: ResourceKind | readonly ResourceKind[],
  past: string,
  present: string,
  rest: string,
): ActionWords => ({ on: [kinds].flat(), done: `${past} ${rest}`, tried: `${present} ${rest}` });

/** Words for every action. An audited operation without words does not compile. */
export const AUDIT_ACTIONS: Readonly<Record<AuditAction, ActionWords>> = {
  createAgent: on("agent", "Created", "create", "agent"),
  updateAgent: on("agent", "Changed", "change", "agent’s details"),
  updateAgentBudgetPolicy: on("agent", "Changed", "change", "budget policy of agent"),
  pauseAgent: on("agent", "Paused", "pause", "agent"),
  resumeAgent: on("agent", "Resumed", "resume", "agent"),
  setAgentRestrictions: on("agent", "Changed", "change", "restrictions of agent"),
  archiveAgent: on("agent", "Archived", "archive", "agent"),
  mintAgentKey: on("agent", "Created", "create", "key of agent"),
  revokeAgentKey: on("agent", "Revoked", "revoke", "key of agent"),
  connectClient: on("agent", "Connected", "connect", "a client to agent"),
  denyConnection: on("organization", "Denied", "deny", "a client’s connection"),
  fundAgent: on("agent", "Funded", "fund", "wallet of agent"),
  fundAgentInSandbox: on("agent", "Added", "add", "test money to agent"),

  decidePayment: on("transaction", "Judged", "judge", "payment by policy"),
  resolvePayment: on("transaction", "Resolved", "resolve", "payment on hold"),
  viewCard: on("transaction", "Showed", "show", "card of payment"),
  disputeTransaction: on("transaction", "Disputed", "dispute", "payment"),
  bookPayment: on("transaction", "Booked", "book", "what the network did with payment"),
  refusePayment: on("transaction", "Refused", "refuse", "payment after its approval"),
  approveApproval: on("approval", "Approved", "approve", "payment"),
  denyApproval: on("approval", "Denied", "deny", "payment"),
  grantRaiseRequest: on("raise_request", "Granted", "grant", "raise"),
  refuseRaiseRequest: on("raise_request", "Refused", "refuse", "raise"),
  decideApprovals: on("approval", "Decided", "decide", "several payments"),

  createTeam: on("team", "Created", "create", "team"),
  updateTeam: on("team", "Changed", "change", "team’s details"),
  archiveTeam: on("team", "Archived", "archive", "team"),
  setTeamBudget: on("team", "Changed", "change", "budget of team"),
  setTeamApprovalRules: on("team", "Changed", "change", "approval rules of team"),
  setTeamRestrictions: on("team", "Changed", "change", "restrictions of team"),
  pauseTeamAgents: on("team", "Paused", "pause", "agents of team"),
  revokeTeamAgentKeys: on("team", "Revoked", "revoke", "agent keys of team"),
  stopTeam: on("team", "Stopped", "stop", "all agents of team"),

  createProject: on("project", "Created", "create", "project"),
  updateProject: on("project", "Changed", "change", "project’s details"),
  archiveProject: on("project", "Archived", "archive", "project"),
  setProjectBudget: on("project", "Changed", "change", "budget of project"),
  setProjectCalendar: on("project", "Changed", "change", "calendar of project"),
  setProjectApprovalRules: on("project", "Changed", "change", "approval rules of project"),
  setProjectRestrictions: on("project", "Changed", "change", "restrictions of project"),
  pauseProjectAgents: on("project", "Paused", "pause", "agents of project"),
  revokeProjectAgentKeys: on("project", "Revoked", "revoke", "agent keys of project"),
  stopProject: on("project", "Stopped", "stop", "all agents of project"),

  createOrganization: on("organization", "Created", "create", "organization"),
  setUp: on("organization", "Set up", "set up", "service"),
  checkSetUp: on("organization", "Checked", "check", "set-up link"),
  updateOrganization: on("organization", "Changed", "change", "settings of organization"),
  stopOrganization: on("organization", "Stopped", "stop", "all agents of organization"),
  setPlan: on("organization", "Changed", "change", "plan of organization"),
  connectCardIssuer: on("organization", "Connected", "connect", "card issuer"),
  disconnectCardIssuer: on("organization", "Disconnected", "disconnect", "card issuer"),
  checkCardIssuer: on("organization", "Checked", "check", "card issuer"),
  depositToTreasury: on("organization", "Deposited", "deposit", "test money in treasury"),
  failBilling: on("organization", "Simulated", "simulate", "failed billing"),

  createInvite: on("invite", "Invited", "invite", "person"),
  mailInvite: on("invite", "Mailed", "mail", "invite"),
  revokeInvite: on("invite", "Withdrew", "withdraw", "invite"),
  checkInvite: on("invite", "Opened", "open", "invite"),
  acceptInvite: on("invite", "Accepted", "accept", "invite"),
  updateMember: on("user", "Changed", "change", "role of member"),
  removeMember: on("user", "Removed", "remove", "member"),
  updateNotifications: on("user", "Changed", "change", "notifications of member"),

  mintOrganizationKey: on("organization_key", "Created", "create", "organization key"),
  rotateOrganizationKey: on("organization_key", "Rotated", "rotate", "organization key"),
  revokeOrganizationKey: on("organization_key", "Revoked", "revoke", "organization key"),

  createWebhook: on("webhook_endpoint", "Added", "add", "webhook endpoint"),
  updateWebhook: on("webhook_endpoint", "Changed", "change", "webhook endpoint"),
  deleteWebhook: on("webhook_endpoint", "Deleted", "delete", "webhook endpoint"),
  disableWebhook: on("webhook_endpoint", "Disabled", "disable", "webhook endpoint"),
  rotateWebhookSecret: on("webhook_endpoint", "Rotated", "rotate", "secret of webhook endpoint"),
  testWebhook: on("webhook_endpoint", "Tested", "test", "webhook endpoint"),
  redeliverWebhook: on("webhook_endpoint", "Sent", "send", "webhook delivery again"),
  replayWebhook: on("webhook_endpoint", "Replayed", "replay", "events to webhook endpoint"),

  signIn: on("user", "Signed in", "sign in", "with password"),
  signInWithPasskey: on("user", "Signed in", "sign in", "with passkey"),
  startSso: on("user", "Began", "begin", "sign-in by identity provider"),
  finishSso: on("user", "Signed in", "sign in", "by identity provider"),
  endSsoSessions: on("user", "Ended", "end", "sessions for identity provider"),
  setSso: on("organization", "Set", "set", "identity provider"),
  removeSso: on("organization", "Removed", "remove", "identity provider"),
  passkeySignInOptions: on("user", "Began", "begin", "sign-in with passkey"),
  refreshSession: on("user", "Continued", "continue", "session"),
  signOut: on("user", "Signed out", "sign out", "of session"),
  endSession: on("session", "Ended", "end", "another session"),
  endOtherSessions: on("user", "Ended", "end", "all other sessions"),
  changePassword: on("user", "Changed", "change", "password"),
  stepUp: on("user", "Confirmed", "confirm", "identity with second factor"),
  stepUpOptions: on("user", "Began", "begin", "confirmation with passkey"),
  enrollTotp: on("user", "Began", "begin", "enrolment of authenticator app"),
  confirmTotp: on("user", "Enrolled", "enrol", "authenticator app"),
  passkeyOptions: on("user", "Began", "begin", "enrolment of passkey"),
  enrollPasskey: on(["passkey", "user"], "Enrolled", "enrol", "passkey"),
  updatePasskey: on("passkey", "Renamed", "rename", "passkey"),
  removePasskey: on("passkey", "Removed", "remove", "passkey"),

  resetPassword: on("user", "Reset", "reset", "password of member"),
  resetSecondFactors: on("user", "Reset", "reset", "second factors of member"),
  reconcileRepair: on("organization", "Repaired", "repair", "records of organization"),
  restoreLedger: on("project", "Restored", "restore", "ledger of project"),
  acceptRecords: on("project", "Accepted", "accept", "records of project"),
  rotateMasterKey: on("master_key", "Rotated", "rotate", "master key"),
  deployWalletFactory: on("wallet_factory", "Deployed", "deploy", "wallet factory"),
  furtherRefusals: on("organization", "Counted", "count", "further refusals"),
};

const isAction = (action: string): action is AuditAction => Object.hasOwn(AUDIT_ACTIONS, action);

export const isResourceKind = (type: string): type is ResourceKind => Object.hasOwn(RESOURCE_KINDS, type);

export const actionsOn = (type: string): readonly AuditAction[] =>
  Object.keys(AUDIT_ACTIONS)
    .filter(isAction)
    .filter((action) => AUDIT_ACTIONS[action].on.some((kind) => kind === type));

const readable = (code: string): string => code.toLowerCase().replaceAll("_", " ");

/** Returns an action's words; for an unknown action, its name. */
export const actionLabel = (action: string): string =>
  isAction(action) ? AUDIT_ACTIONS[action].done : action;

type Outcomes = Pick<AuditEntry, "after" | "decision" | "from" | "result">;

/** Returns an entry's sentence: `Paused agent`, or `Tried to pause agent`. */
export function entryLabel(entry: Outcomes & Pick<AuditEntry, "action">): string {
  const { action, from } = entry;
  const isTried = isRequest(from) && ["refused", "failed", "unknown"].includes(outcomeOf(entry).kind);
  return isTried && isAction(action) ? `Tried to ${AUDIT_ACTIONS[action].tried}` : actionLabel(action);
}

export interface AuditOutcome {
  readonly kind: "done" | "held" | "refused" | "failed" | "unknown";
  readonly word: string;
  /** Reason for a refusal, or what remains open; null for none. */
  readonly why: string | null;
}

const INTERNAL_ERROR = 500;

export function outcomeOf({ after, decision, from, result: { code, status } }: Outcomes): AuditOutcome {
  const why = code === null ? null : readable(code);
  const outcome = fieldOf(decision, "outcome");
  if (outcome === "approved") return { kind: "done", word: "Approved", why: null };
  if (outcome === "held") return { kind: "held", word: "Held", why: "requires approval" };
  if (typeof outcome === "string") return { kind: "refused", word: capital(outcome), why };
  const effect = fieldOf(decision, "effect");
  if (typeof effect === "string") {
    const isBreach = Array.isArray(fieldOf(decision, "breach"));
    return { kind: "done", word: capital(readable(effect)), why: isBreach ? "exceeded a limit" : null };
  }
  const refusals = fieldOf(after, "refusals");
  if (typeof refusals === "number") {
    const more = `${refusals} more`;
    return { kind: "refused", word: "Refused", why: why === null ? more : `${more}: ${why}` };
  }
  if (status !== null && status >= INTERNAL_ERROR)
    return { kind: "failed", word: "Failed", why: "it may have been done" };
  if (code !== null) return { kind: "refused", word: "Refused", why };
  if (status === null && isRequest(from))
    return { kind: "unknown", word: "Unknown", why: "begun, and it may have been done" };
  return { kind: "done", word: "Done", why: null };
}

/** Whether the actor is only the person whose account somebody tried, unsuccessfully, to sign in to. */
export const isUnproved = (entry: Outcomes & Pick<AuditEntry, "actor">): boolean =>
  entry.actor.type === "user" &&
  entry.actor.sessionId === undefined &&
  isRequest(entry.from) &&
  outcomeOf(entry).kind === "refused";

const isRequest = (from: AuditEntry["from"]): boolean => from?.surface === "rest" || from?.surface === "mcp";

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;

/** Parts of the service, keyed by the actor ids in their entries. */
const SYSTEM_ACTORS: Readonly<Record<string, string>> = {
  command: "Operator",
  connections: "Service (connection ended)",
  "set-up": "Set-up link",
  archive: "Service (archived agent)",
  expiry: "Service (approval expired)",
  mail: "Service (mail)",
  network: "Payment network",
  policy: "Service (policy)",
  refusals: "Service (counted refusals)",
  verification: "Service (verification)",
  webhooks: "Service (webhooks)",
};

export const systemActor = (id: string): string => SYSTEM_ACTORS[id] ?? "Service";
