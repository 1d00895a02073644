/** Task queue of all workflows and activities, unless `TEMPORAL_TASK_QUEUE` names another. */
export const DEFAULT_TASK_QUEUE = "agent-spending-control";

/** Custom search attributes, registered by temporal-dev.yaml; operators filter by them in the Temporal UI. */
export const SEARCH_ATTRIBUTES = {
  organizationId: "OrganizationId",
  projectId: "ProjectId",
  teamId: "TeamId",
  agentId: "AgentId",
  agentState: "AgentState",
  approvalState: "ApprovalState",
  transactionId: "TransactionId",
  webhookEndpointId: "WebhookEndpointId",
  eventType: "EventType",
  deliveryState: "DeliveryState",
} as const;
