import { proxyActivities, setCurrentDetails } from "@temporalio/workflow";
import type { Activities } from "../activities/types.ts";
import type { OrganizationInput } from "../src/messages/organization.ts";

const { provisionOrganization } = proxyActivities<Activities>({
  startToCloseTimeout: "20 seconds",
  retry: { initialInterval: "1 second", backoffCoefficient: 2, maximumInterval: "1 minute" },
});

/** Provisions an organization. Until it has ended, creates are answered with `ORG_NOT_READY`. */
export async function organization(input: OrganizationInput): Promise<void> {
  setCurrentDetails(`Organization \`${input.organizationId}\` is being provisioned.`);
  await provisionOrganization(input);
  setCurrentDetails(`Organization \`${input.organizationId}\` is **ready**.`);
}
