/** Names and payloads of the workflow that provisions an organization. */

export const ORGANIZATION_WORKFLOW = "organization";
export const organizationWorkflowId = (organizationId: string): string => `organization/${organizationId}`;

export interface OrganizationInput {
  readonly organizationId: string;
  readonly defaultProjectId: string;
  readonly defaultTeamId: string;
}
