/** The task queue of all workflows and activities. */
export const TASK_QUEUE = "agent-spending-control";

/** Custom search attributes, registered by temporal-dev.yaml; operators filter by them in the Temporal UI. */
export const SEARCH_ATTRIBUTES = {
  organizationId: "OrganizationId",
  projectId: "ProjectId",
  teamId: "TeamId",
  agentId: "AgentId",
  agentState: "AgentState",
  approvalState: "ApprovalState",
  transactionId: "TransactionId",
} as const;
