import { z } from "zod";
import type { AgentProfile } from "../../src/domain/agent/state.ts";
import type { Activities } from "../types.ts";
import {
  accountWrites,
  agentWrite,
  exactly,
  followed,
  id,
  instant,
  items,
  mirrored,
  payment,
  profile,
  recordedCap,
  toldActor,
  unfinished,
  version,
} from "./shapes.ts";

type Input<K extends keyof Activities> = Parameters<Activities[K]>[0];

const ofPayment = exactly<Input<"executeApproved">>({ profile, payment });

/**
 * What each activity may be given. A client with access to Temporal can schedule any activity with any input, so each input is
 * validated before it begins; an activity that is not here is never run.
 */
export const ACTIVITY_INPUTS: { readonly [K in keyof Activities]-?: z.ZodType<Input<K>> } = {
  executePayments: exactly<Input<"executePayments">>({ payments: items(unfinished) }),
  writeAccounts: accountWrites,
  tellActors: exactly<Input<"tellActors">>({ accounts: items(toldActor) }),
  writeCaps: exactly<Input<"writeCaps">>({ projectId: id, caps: items(recordedCap) }),
  writeAgent: agentWrite,
  followInLedger: exactly<Input<"followInLedger">>({ agent: profile, followed }),
  expireApproval: exactly<Input<"expireApproval">>({ profile, transactionId: id }),
  executeApproved: ofPayment,
  followPayment: ofPayment,
  mirrorLimits: exactly<Input<"mirrorLimits">>({ limits: items(mirrored) }),
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
  mailApprovals: exactly<Input<"mailApprovals">>({
    organizationId: id,
    userId: id,
    mail: z.discriminatedUnion("kind", [
      z.strictObject({ kind: z.literal("single"), approvalId: id, heldAt: instant }),
      z.strictObject({ kind: z.literal("digest"), since: instant, through: instant }),
    ]),
  }),
  watchEvents: z.undefined(),
  watchDeposits: z.undefined(),
};

const inputs: ReadonlyMap<string, z.ZodType> = new Map(Object.entries(ACTIVITY_INPUTS));

/** Why an activity is not to run with these arguments: the names of fields, never their values. Null: it may. */
export function refusedInput(activity: string, args: readonly unknown[]): string | null {
  const schema = inputs.get(activity);
  if (schema === undefined) return "there is no such activity";
  if (args.length > 1) return "it has more than one argument";
  const parsed = schema.safeParse(args[0]);
  if (parsed.success) return null;
  const [issue] = parsed.error.issues;
  const where = issue?.path.join(".") ?? "";
  return `its input is not as it should be${where === "" ? "" : ` at ${where}`} (${issue?.code ?? "unknown"})`;
}

const scope = z.object({ organizationId: id, projectId: id, teamId: id, agentId: id });
const namingAgent = z.object({ profile: scope });
const namingAgents = z.object({ payments: z.array(namingAgent) });

/** The agents that an input names, with the project and team that it claims for each. */
export function scopedAgents(args: readonly unknown[]): Omit<AgentProfile, "name">[] {
  const one = namingAgent.safeParse(args[0]);
  if (one.success) return [one.data.profile];
  const several = namingAgents.safeParse(args[0]);
  return several.success ? several.data.payments.map(({ profile: named }) => named) : [];
}
