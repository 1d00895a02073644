import * as agents from "./operations/agents.ts";
import * as approvalRules from "./operations/approval-rules.ts";
import * as raiseRequests from "./operations/raise-requests.ts";
import * as restrictions from "./operations/restrictions.ts";
import * as approvals from "./operations/approvals.ts";
import * as auditLog from "./operations/audit-log.ts";
import * as budgets from "./operations/budgets.ts";
import * as calendar from "./operations/calendar.ts";
import * as connections from "./operations/connections.ts";
import * as auth from "./operations/auth.ts";
import * as members from "./operations/members.ts";
import * as notifications from "./operations/notifications.ts";
import * as organization from "./operations/organization.ts";
import * as organizationKeys from "./operations/organization-keys.ts";
import * as passkeys from "./operations/passkeys.ts";
import * as payments from "./operations/payments.ts";
import * as projects from "./operations/projects.ts";
import * as purchases from "./operations/purchases.ts";
import * as rails from "./operations/rails.ts";
import * as sessions from "./operations/sessions.ts";
import * as simulations from "./operations/simulations.ts";
import * as sso from "./operations/sso.ts";
import * as stream from "./operations/stream.ts";
import * as sandbox from "./operations/sandbox.ts";
import * as teams from "./operations/teams.ts";
import * as transactions from "./operations/transactions.ts";
import * as webhooks from "./operations/webhooks.ts";
import { session } from "./records.ts";
import type { Operation } from "./types.ts";

const {
  delivery: _delivery,
  eventType: _eventType,
  fitsScope: _fitsScope,
  SCOPE_IDS_ISSUE: _scopeIdsIssue,
  ...webhookOperations
} = webhooks;
const { createAgentBody: _createAgentBody, mcpConfigBlock: _mcpConfigBlock, ...agentOperations } = agents;

/** All operations by id. To add one, define it in `operations/` and give it a handler. */
export const operations = {
  ...auth,
  ...rails,
  ...sessions,
  ...notifications,
  ...passkeys,
  ...auditLog,
  ...members,
  ...organization,
  ...organizationKeys,
  ...projects,
  ...teams,
  ...budgets,
  ...calendar,
  ...approvalRules,
  ...raiseRequests,
  ...restrictions,
  ...simulations,
  ...agentOperations,
  ...connections,
  ...payments,
  ...purchases,
  ...approvals,
  ...transactions,
  ...sso,
  ...stream,
  ...webhookOperations,
  ...sandbox,
};

export type Operations = typeof operations;
export type OperationId = keyof Operations;

const ids: readonly OperationId[] = Object.keys(operations).filter(
  (id): id is OperationId => id in operations,
);

export const operationList: readonly (readonly [OperationId, Operation])[] = ids.map((id) => [
  id,
  operations[id],
]);

/** Whether the operation begins or continues a session, so that a browser may receive its tokens in cookies. */
export const answersSession = (id: OperationId): boolean => operations[id].output === session;
