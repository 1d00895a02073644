import { expect } from "chai";
import type { OrganizationInput } from "../../src/messages/organization.ts";
import { ORGANIZATION_WORKFLOW, organizationWorkflowId } from "../../src/messages/organization.ts";
import { eventsOf } from "./support/history.ts";
import { useStage } from "./support/untimed.ts";

describe("workflow organization: provisions until it is ready", () => {
  const play = useStage();

  it("a failing provisioning is retried with the same ids, and the workflow ends when it worked", () => {
    const tries: OrganizationInput[] = [];
    return play(
      async (stage) => {
        const input: OrganizationInput = {
          organizationId: stage.scene,
          defaultProjectId: "project",
          defaultTeamId: "team",
        };
        const handle = await stage.client.workflow.start(ORGANIZATION_WORKFLOW, {
          taskQueue: stage.taskQueue,
          workflowId: organizationWorkflowId(stage.scene),
          args: [input],
        });
        await handle.result();
        expect(tries).to.deep.equal([input, input]);
        const events = await eventsOf(handle);
        expect(events.filter((event) => event.activityTaskScheduledEventAttributes)).to.have.length(1);
      },
      {
        activities: {
          provisionOrganization(input) {
            tries.push(input);
            return tries.length === 1 ? Promise.reject(new Error("not now")) : Promise.resolve();
          },
        },
      },
    );
  });
});
