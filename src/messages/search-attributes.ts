import { defineSearchAttributeKey, SearchAttributeType, TypedSearchAttributes } from "@temporalio/common";
import type { AgentProfile } from "../domain/agent/state.ts";
import { SEARCH_ATTRIBUTES } from "./common.ts";
import type { DeliveryInput } from "./delivery.ts";

const keyword = (name: string) => defineSearchAttributeKey(name, SearchAttributeType.KEYWORD);

export const agentStateKey = keyword(SEARCH_ATTRIBUTES.agentState);
export const approvalStateKey = keyword(SEARCH_ATTRIBUTES.approvalState);
const organizationIdKey = keyword(SEARCH_ATTRIBUTES.organizationId);
export const projectIdKey = keyword(SEARCH_ATTRIBUTES.projectId);
const teamIdKey = keyword(SEARCH_ATTRIBUTES.teamId);
const agentIdKey = keyword(SEARCH_ATTRIBUTES.agentId);
export const deliveryStateKey = keyword(SEARCH_ATTRIBUTES.deliveryState);
const webhookEndpointIdKey = keyword(SEARCH_ATTRIBUTES.webhookEndpointId);
const eventTypeKey = keyword(SEARCH_ATTRIBUTES.eventType);
const transactionIdKey = keyword(SEARCH_ATTRIBUTES.transactionId);

const ofProfile = (profile: AgentProfile) => [
  { key: organizationIdKey, value: profile.organizationId },
  { key: projectIdKey, value: profile.projectId },
  { key: teamIdKey, value: profile.teamId },
  { key: agentIdKey, value: profile.agentId },
];

export const agentSearchAttributes = (profile: AgentProfile, state: string): TypedSearchAttributes =>
  new TypedSearchAttributes([...ofProfile(profile), { key: agentStateKey, value: state }]);

export const organizationSearchAttributes = (organizationId: string): TypedSearchAttributes =>
  new TypedSearchAttributes([{ key: organizationIdKey, value: organizationId }]);

export const ledgerSearchAttributes = (organizationId: string, projectId: string): TypedSearchAttributes =>
  new TypedSearchAttributes([
    { key: organizationIdKey, value: organizationId },
    { key: projectIdKey, value: projectId },
  ]);

export const paymentSearchAttributes = (
  profile: AgentProfile,
  transactionId: string,
  approvalState: string | null,
): TypedSearchAttributes =>
  new TypedSearchAttributes([
    ...ofProfile(profile),
    { key: transactionIdKey, value: transactionId },
    ...(approvalState === null ? [] : [{ key: approvalStateKey, value: approvalState }]),
  ]);

export const deliverySearchAttributes = (input: DeliveryInput, state: string): TypedSearchAttributes =>
  new TypedSearchAttributes([
    { key: organizationIdKey, value: input.organizationId },
    { key: webhookEndpointIdKey, value: input.endpointId },
    { key: eventTypeKey, value: input.eventType },
    { key: deliveryStateKey, value: state },
  ]);
