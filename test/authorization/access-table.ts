import type { AgentTool } from "../../src/contract/tool-names.ts";
import type { OperationId } from "../../src/contract/registry.ts";
import type { OrganizationScope, Role } from "../../src/contract/types.ts";

/**
 * Who may call what, written out by hand from what the API promises, and
 * not taken from the registry: a wrong declaration there differs from it. An operation that is not here does not
 * compile.
 */
export type Row = PublicRow | AgentRow | ManagementRow;

interface PublicRow {
  readonly who: "anyone";
}

interface AgentRow {
  readonly who: "agent";
  readonly tools: readonly AgentTool[];
  /** What a body that says more needs. */
  readonly variants?: readonly { readonly body: object; readonly tools: readonly AgentTool[] }[];
}

export interface Needs {
  readonly role: Role;
  readonly stepUp: boolean;
}

interface ManagementRow extends Needs {
  readonly who: "management";
  /** Null: people only. */
  readonly scope: OrganizationScope | null;
  /** Of a user without a second factor although their organization requires one: else they only get to enrol it. */
  readonly beforeEnrolment?: true;
  /** `isForPeople`: no key may ask for it. */
  readonly variants?: readonly ({ readonly body: object; readonly isForPeople?: true } & Needs)[];
  /** An auditor may, too, although the role is below. */
  readonly orAuditor?: true;
}

const anyone: PublicRow = { who: "anyone" };
const agent = (...tools: readonly AgentTool[]): AgentRow => ({ who: "agent", tools });

const manage = (scope: OrganizationScope | null, needs: Partial<Needs> = {}): ManagementRow => ({
  who: "management",
  scope,
  role: "member",
  stepUp: false,
  ...needs,
});
/** What everybody of the organization may read. */
const read = (scope: OrganizationScope | null): ManagementRow => manage(scope, { role: "auditor" });
/** About one's own account. */
const own: ManagementRow = { ...read(null), beforeEnrolment: true };
const admin = { role: "admin" } as const;
const adminSteppedUp = { role: "admin", stepUp: true } as const;
const ownerSteppedUp = { role: "owner", stepUp: true } as const;

/** A pause, for whoever may pause; with the keys a revocation, which no key may ask for. */
const stops = (scope: OrganizationScope | null): ManagementRow => ({
  ...manage(scope),
  variants: [
    { body: { revokeKeys: true }, isForPeople: true, ...adminSteppedUp },
    { body: { revokeKeys: false }, role: "member", stepUp: false },
  ],
});

const containerRows = (scopes: { readonly read: OrganizationScope; readonly write: OrganizationScope }) => ({
  create: manage(scopes.write, admin),
  read: read(scopes.read),
  change: manage(null, admin),
  archive: manage(null, adminSteppedUp),
  // A write's precondition, so a key needs the write's scope.
  readBudget: read(scopes.write),
  setBudget: manage(scopes.write, admin),
});
const projects = containerRows({ read: "projects:read", write: "projects:write" });
const teams = containerRows({ read: "teams:read", write: "teams:write" });

export const ACCESS: Readonly<Record<OperationId, Row>> = {
  signIn: anyone,
  refreshSession: anyone,
  setUp: anyone,
  checkSetUp: anyone,
  checkInvite: anyone,
  acceptInvite: anyone,
  signOut: own,
  getMe: own,
  enrollTotp: own,
  confirmTotp: own,
  changePassword: own,
  listSessions: own,
  endSession: own,
  endOtherSessions: own,
  getNotifications: own,
  updateNotifications: own,
  stepUp: read(null),
  stepUpOptions: read(null),

  startSso: anyone,
  finishSso: anyone,
  endSsoSessions: anyone,
  getSso: manage(null, { role: "owner" }),
  setSso: manage(null, { role: "owner", stepUp: true }),
  removeSso: manage(null, { role: "owner", stepUp: true }),

  passkeySignInOptions: anyone,
  signInWithPasskey: anyone,
  // A further one needs step-up by whether there is a factor, which no declaration knows.
  passkeyOptions: own,
  enrollPasskey: own,
  listPasskeys: own,
  updatePasskey: manage(null, { role: "auditor", stepUp: true }),
  removePasskey: manage(null, { role: "auditor", stepUp: true }),

  getOrganization: read(null),
  updateOrganization: {
    ...manage(null, admin),
    variants: [
      // The owner that is named can withdraw everything.
      { body: { walletOwner: null }, role: "owner", stepUp: true },
      { body: { name: "Renamed", requireSecondFactor: false }, role: "owner", stepUp: true },
      { body: { name: "Renamed", timezone: "Europe/Berlin" }, role: "admin", stepUp: false },
    ],
  },

  // Owners, admins and auditors: it tells what everybody did, and from where.
  listAuditLog: { ...manage(null, admin), orAuditor: true },
  exportAuditLog: { ...manage(null, admin), orAuditor: true },
  verifyAuditLog: { ...manage(null, admin), orAuditor: true },

  listMembers: read(null),
  updateMember: {
    ...manage(null, adminSteppedUp),
    variants: [
      { body: { role: "owner" }, role: "owner", stepUp: true },
      { body: { role: "member" }, ...adminSteppedUp },
    ],
  },
  removeMember: manage(null, adminSteppedUp),
  createInvite: {
    ...manage(null, admin),
    variants: [
      { body: { role: "owner" }, role: "owner", stepUp: true },
      { body: { role: "admin" }, ...adminSteppedUp },
      { body: { role: "member" }, role: "admin", stepUp: false },
      { body: { role: "auditor" }, role: "admin", stepUp: false },
    ],
  },
  // A member reads everything but keys and webhooks.
  listInvites: read(null),
  revokeInvite: manage(null, admin),

  mintOrganizationKey: manage(null, adminSteppedUp),
  listOrganizationKeys: manage(null, admin),
  rotateOrganizationKey: manage(null, adminSteppedUp),
  revokeOrganizationKey: manage(null, adminSteppedUp),

  createWebhook: manage(null, admin),
  listWebhooks: manage(null, admin),
  getWebhook: manage(null, admin),
  updateWebhook: manage(null, admin),
  deleteWebhook: manage(null, admin),
  rotateWebhookSecret: manage(null, admin),
  testWebhook: manage(null, admin),
  listWebhookDeliveries: manage(null, admin),
  getWebhookDelivery: manage(null, admin),
  redeliverWebhook: manage(null, admin),
  replayWebhook: manage(null, admin),
  getWebhookReplay: manage(null, admin),

  createProject: projects.create,
  createProjectByTool: projects.create,
  listProjects: projects.read,
  getProject: projects.read,
  updateProject: projects.change,
  archiveProject: projects.archive,
  getProjectBudget: projects.readBudget,
  setProjectBudget: projects.setBudget,
  createTeam: teams.create,
  createTeamByTool: teams.create,
  listTeams: teams.read,
  getTeam: teams.read,
  updateTeam: teams.change,
  archiveTeam: teams.archive,
  getTeamBudget: teams.readBudget,
  setTeamBudget: teams.setBudget,
  // A read that is a write's precondition needs the write scope; a member reads everything but keys and webhooks.
  getProjectCalendar: read("projects:write"),
  setProjectCalendar: manage("projects:write", adminSteppedUp),
  getProjectApprovalRules: read("projects:write"),
  setProjectApprovalRules: manage("projects:write", admin),
  getTeamApprovalRules: read("teams:write"),
  setTeamApprovalRules: manage("teams:write", admin),
  getProjectRestrictions: read("projects:write"),
  setProjectRestrictions: manage("projects:write", admin),
  getTeamRestrictions: read("teams:write"),
  setTeamRestrictions: manage("teams:write", admin),
  simulateAgentBudgetPolicy: manage("agents:write", admin),
  simulateAgentRestrictions: manage("agents:write", admin),
  simulateTeamBudget: manage("teams:write", admin),
  simulateTeamApprovalRules: manage("teams:write", admin),
  simulateTeamRestrictions: manage("teams:write", admin),
  simulateProjectBudget: manage("projects:write", admin),
  simulateProjectApprovalRules: manage("projects:write", admin),
  simulateProjectRestrictions: manage("projects:write", admin),
  simulateProjectCalendar: manage("projects:write", admin),

  createAgent: manage("agents:write", admin),
  listAgents: read("agents:read"),
  summarizeAgents: read("agents:read"),
  getAgent: read("agents:read"),
  connectAgent: read("agents:read"),
  getAgentWallet: read("agents:read"),
  getAgentBudgetPolicy: read("agents:write"),
  updateAgentBudgetPolicy: manage("agents:write", adminSteppedUp),
  requestRaise: agent("request_raise"),
  listRaiseRequests: read("agents:read"),
  getRaiseRequest: read("agents:read"),
  grantRaiseRequest: manage(null, adminSteppedUp),
  refuseRaiseRequest: manage(null),
  getAgentRestrictions: read("agents:write"),
  setAgentRestrictions: manage("agents:write", adminSteppedUp),
  updateAgent: manage(null, admin),
  mintAgentKey: manage(null, adminSteppedUp),
  getConnection: manage(null, admin),
  connectClient: manage(null, adminSteppedUp),
  denyConnection: manage(null, admin),
  revokeAgentKey: manage(null, adminSteppedUp),
  archiveAgent: manage("agents:write", adminSteppedUp),
  // What stops one agent stops all of a team or project, for each caller who may stop one.
  stopTeam: stops("agents:write"),
  stopProject: stops("agents:write"),
  stopOrganization: stops(null),
  pauseTeamAgents: manage("agents:write"),
  pauseProjectAgents: manage("agents:write"),
  revokeTeamAgentKeys: manage(null, adminSteppedUp),
  revokeProjectAgentKeys: manage(null, adminSteppedUp),
  pauseAgent: manage("agents:write"),
  resumeAgent: manage("agents:write"),

  fundAgent: manage(null, adminSteppedUp),

  listRails: { ...manage(null, admin), orAuditor: true },
  connectCardIssuer: manage(null, ownerSteppedUp),
  disconnectCardIssuer: manage(null, ownerSteppedUp),
  checkCardIssuer: manage(null, ownerSteppedUp),
  viewCard: manage(null, adminSteppedUp),
  disputeTransaction: manage(null, adminSteppedUp),

  // Sandbox routes need no step-up.
  fundAgentInSandbox: manage(null, admin),
  depositToTreasury: manage(null, admin),
  failBilling: manage(null, admin),
  listCardLedger: manage(null, admin),

  // For pages: a person's, never a key's.
  streamChanges: read(null),

  getTransaction: read("agents:read"),
  getTransactionStory: read("agents:read"),
  getTransactionExplanation: read("agents:read"),
  listTransactions: read("agents:read"),
  exportTransactions: read("agents:read"),
  summarizeTransactions: read("agents:read"),
  getApproval: read("agents:read"),
  getApprovalContext: read("agents:read"),
  listPendingApprovals: read("agents:read"),
  listCompletedApprovals: read("agents:read"),
  approveApproval: manage(null),
  denyApproval: manage(null),
  decideApprovals: manage(null),

  payX402Request: agent("pay_x402_request"),
  createPayment: {
    ...agent("create_card_payment", "create_wallet_payment"),
    variants: [
      { body: { rail: "card" }, tools: ["create_card_payment"] },
      { body: { rail: "wallet" }, tools: ["create_wallet_payment"] },
    ],
  },
  createCardPayment: agent("create_card_payment"),
  createWalletPayment: agent("create_wallet_payment"),
  getWallet: agent("get_wallet"),
  checkPayment: agent("check_payment"),
  getPayment: agent("get_payment"),
  listPayments: agent("list_payments"),
  cancelPayment: agent("cancel_payment"),
  getDenialFeedback: agent("get_denial_feedback"),
  getBudget: agent("get_budget"),
};
