import { z } from "zod";
import { checkCustomLimits, planFields } from "../../src/identity/plan.ts";
import { limitsOf } from "../../src/limits/plans.ts";
import { authCollections, type Plan } from "../../src/store/identity-documents.ts";
import { AdminError, connectedToMongo } from "./connecting.ts";
import { requireMasterKey } from "./master-key.ts";
import { recordCommand } from "./record-command.ts";

/** Arguments of the command, not yet validated. */
export interface SetPlanInput {
  readonly organization: string;
  readonly plan: string;
  readonly restPerMinute?: number;
  readonly mcpPerMinute?: number;
}

export interface PlanSet {
  readonly organizationId: string;
  readonly plan: Plan;
  readonly restPerMinute: number;
  readonly mcpPerMinute: number;
}

const inputSchema = z.object(planFields).superRefine(checkCustomLimits);

/**
 * `set-plan`: changes an organization's plan. Custom limits that are not named are removed. The audit entry comes
 * first, so that no crash leaves a change without one; repeating the command completes it.
 */
export const setPlan = (
  env: NodeJS.ProcessEnv,
  { organization: _id, ...input }: SetPlanInput,
): Promise<PlanSet> =>
  connectedToMongo(env, async ({ db }) => {
    const parsed = inputSchema.safeParse(input);
    if (!parsed.success) {
      throw new AdminError(
        parsed.error.issues.map(({ message, path }) => `${path.join(".")}: ${message}`).join(" "),
      );
    }
    const { mcpPerMinute = null, plan, restPerMinute = null } = parsed.data;
    const masterKey = await requireMasterKey(env);
    const { organizations } = authCollections(db);
    const organization = await organizations.findOne({ _id });
    if (organization === null) throw new AdminError(`There is no organization ${_id}.`);
    const after = { plan, restPerMinute, mcpPerMinute };
    await recordCommand(db, masterKey, {
      organizationId: _id,
      via: "set-plan",
      action: "setPlan",
      resource: { type: "organization", id: _id },
      before: {
        plan: organization.plan,
        restPerMinute: organization.restPerMinute,
        mcpPerMinute: organization.mcpPerMinute,
      },
      after,
    });
    await organizations.updateOne({ _id }, { $set: after }, { writeConcern: { w: "majority" } });
    const { mcp, rest } = limitsOf({ ...organization, ...after });
    return { organizationId: _id, plan, restPerMinute: rest, mcpPerMinute: mcp };
  });
