import { z } from "zod";
import type { AgentProfile } from "../../src/domain/agent/state.ts";
import type { BudgetReport } from "../../src/domain/budget/report.ts";
import type { Activities } from "../types.ts";
import {
  addressed,
  agentWrite,
  exactly,
  id,
  instant,
  items,
  payment,
  policy,
  profile,
  report,
  version,
} from "./shapes.ts";

type Input<K extends keyof Activities> = Parameters<Activities[K]>[0];

const ofPayment = exactly<Input<"executeApproved">>({ profile, payment });

/** An agent reports its own totals, under the team that it is of. */
const isOwn = (given: { readonly profile: AgentProfile; readonly report?: BudgetReport }): boolean =>
  given.report === undefined ||
  (given.report.agentId === given.profile.agentId && given.report.teamId === given.profile.teamId);
const NOT_OWN = "the report is another agent's";

/**
 * What each activity may be given. Whoever reaches Temporal can schedule any activity with any input, so each is held against
 * this before it begins; an activity that is not here is never run.
 */
export const ACTIVITY_INPUTS: { readonly [K in keyof Activities]-?: z.ZodType<Input<K>> } = {
  carryOutPayment: exactly<Input<"carryOutPayment">>({
    profile,
    payment,
    report: report.exactOptional(),
    executor: z.enum(["server", "approval"]).exactOptional(),
  }).refine(isOwn, NOT_OWN),
  reportToBudget: exactly<Input<"reportToBudget">>({ profile, report }).refine(isOwn, NOT_OWN),
  agentsUnder: exactly<Input<"agentsUnder">>({
    projectId: id,
    teams: z.union([z.literal("all"), items(id)]),
  }),
  tellAgents: exactly<Input<"tellAgents">>({ deliveries: items(addressed) }),
  writeAgentSummary: agentWrite,
  expireApproval: exactly<Input<"expireApproval">>({ profile, transactionId: id }),
  executeApproved: ofPayment,
  followPayment: ofPayment,
  mirrorLimits: exactly<Input<"mirrorLimits">>({ agentId: id, policy, policyVersion: version }),
  closeDeliveryWindow: exactly<Input<"closeDeliveryWindow">>({ agentId: id }),
  detachWallet: exactly<Input<"detachWallet">>({ profile }),
  provisionOrganization: exactly<Input<"provisionOrganization">>({
    organizationId: id,
    defaultProjectId: id,
    defaultTeamId: id,
  }),
  deliverWebhook: exactly<Input<"deliverWebhook">>({
    deliveryId: id,
    organizationId: id,
    endpointId: id,
    eventType: z.string().regex(/^[\w.]{1,100}$/),
    isTest: z.boolean(),
    run: version,
  }),
  eraseWebhookSecret: exactly<Input<"eraseWebhookSecret">>({
    endpointId: id,
    secretId: id,
    expiresAt: instant,
  }),
  replayWebhooks: exactly<Input<"replayWebhooks">>({ organizationId: id, endpointId: id, replayId: id }),
  mailInvite: exactly<Input<"mailInvite">>({ inviteId: id, organizationId: id }),
  watchEvents: z.undefined(),
  watchDeposits: z.undefined(),
};

const inputs: ReadonlyMap<string, z.ZodType> = new Map(Object.entries(ACTIVITY_INPUTS));

/** Why an activity is not to run with these arguments: the names of fields, never their values. Null: it may. */
export function refusedInput(activity: string, args: readonly unknown[]): string | null {
  const schema = inputs.get(activity);
  if (schema === undefined) return "there is no such activity";
  if (args.length > 1) return "it was given more than one argument";
  const parsed = schema.safeParse(args[0]);
  if (parsed.success) return null;
  const [issue] = parsed.error.issues;
  const where = issue?.path.join(".") ?? "";
  return `its input is not as it should be${where === "" ? "" : ` at ${where}`} (${issue?.code ?? "unknown"})`;
}

const namingAgent = z.object({
  profile: z.object({ organizationId: id, projectId: id, teamId: id, agentId: id }),
});

/** The agent that an input names, with where it is said to lie; null where it names none so. */
export function placedAgent(args: readonly unknown[]): Omit<AgentProfile, "name"> | null {
  const parsed = namingAgent.safeParse(args[0]);
  return parsed.success ? parsed.data.profile : null;
}
