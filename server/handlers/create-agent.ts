import { randomBytes } from "node:crypto";
import type {
  AgentDocument,
  AgentKeyRecord,
  TeamDocument,
  WalletRecord,
} from "../../activities/documents.ts";
import type { BudgetPolicy } from "../../src/domain/agent/policy.ts";
import { formatApiKey, last4 } from "../../src/domain/api-key.ts";
import { ok } from "../../src/domain/result.ts";
import { newId } from "../ids.ts";
import type { ManagementPrincipal } from "../principals.ts";
import { agentView } from "../views.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import { profileOf } from "./dependencies.ts";
import type { Handler } from "./types.ts";

type CreateBody = Parameters<Handler<"createAgent">>[0]["body"];

/**
 * Creates an agent (management-api.md sections 2.1 and 4.1). The actor runs before its key exists, so no key ever lacks
 * an actor; the record, which makes the key good, is what commits the create.
 */
export function createAgentHandler(dependencies: HandlerDependencies): Handler<"createAgent"> {
  const { actors, clock, collections, creates, hashApiKey, mcpUrl, wallets } = dependencies;

  /** Its address follows from the agent's id and its owner, so it can be funded before it is deployed. */
  async function newWallet(
    id: string,
    { organizationId }: ManagementPrincipal,
  ): Promise<WalletRecord | null> {
    if (wallets === null) return null;
    // Read anew: a wallet is its owner's for good, and callers' organizations may be some seconds old.
    const organization = await collections.organizations.findOne({ _id: organizationId });
    const owner = organization?.walletOwner ?? wallets.defaultOwner;
    return owner === null ? null : wallets.newWallet(id, owner);
  }

  async function newAgent(id: string, body: CreateBody, team: TeamDocument, principal: ManagementPrincipal) {
    const apiKey = formatApiKey("agent", randomBytes);
    const now = clock();
    const key: AgentKeyRecord = {
      id: newId("akey"),
      hash: hashApiKey(apiKey),
      last4: last4(apiKey),
      createdAt: now,
      lastUsedAt: null,
    };
    const record: AgentDocument = {
      _id: id,
      organizationId: principal.organizationId,
      projectId: team.projectId,
      teamId: team._id,
      name: body.name,
      description: body.description ?? null,
      scopes: body.scopes ?? null,
      lifecycle: "active",
      policy: initialPolicy(body),
      policyVersion: 1,
      spentCents: 0,
      reservedCents: 0,
      wallet: await newWallet(id, principal),
      key,
      ...creatorOf(principal),
      createdAt: now,
      updatedAt: now,
      archivedAt: null,
      revision: 1,
    };
    return { record, apiKey };
  }

  return async ({ body }, { principal, target: team }) => {
    const created = await creates.once({
      kind: "agent",
      principal,
      idempotencyKey: body.idempotencyKey,
      payload: payloadOf(body),
      parent: { kind: "team", id: team._id, archivedAt: team.archivedAt },
      find: (id) => collections.agents.findOne({ _id: id }),
      async prepare(id) {
        const made = await newAgent(id, body, team, principal);
        await actors.startAgent(profileOf(made.record), made.record.policy);
        return made;
      },
      insert: (record, session) => collections.agents.insertOne(record, { session }),
    });
    if (!created.ok) return created;
    if (created.value.replayed) return ok(replayed(created.value.record));
    const { apiKey, record } = created.value.made;
    return ok({ body: { agent: agentView(record), apiKey, mcpConfigBlock: mcpConfig(mcpUrl, apiKey) } });
  };
}

/** What a replay must repeat; a default that is spelt out is the same. */
const payloadOf = (body: CreateBody) => ({
  name: body.name,
  teamId: body.teamId,
  budgetCents: body.budgetCents,
  description: body.description ?? null,
  autoApprovalThresholdCents: body.autoApprovalThresholdCents ?? null,
  scopes: body.scopes ?? null,
});

/** The key that created it, and the lineage that a machine's archive asks for (management-api.md section 5.4). */
function creatorOf(principal: ManagementPrincipal): Pick<AgentDocument, "createdBy" | "createdByLineage"> {
  if (principal.type === "session") {
    return { createdBy: { type: "user", id: principal.userId }, createdByLineage: null };
  }
  const { keyId, lineageId } = principal;
  return { createdBy: { type: "organization_key", id: keyId }, createdByLineage: lineageId };
}

/** The key is given out once (management-api.md section 4.1, rule 4). */
const replayed = (agent: AgentDocument) => ({
  status: 200 as const,
  body: { agent: agentView(agent), apiKey: null, mcpConfigBlock: null },
});

const initialPolicy = (body: CreateBody): BudgetPolicy => ({
  budgetCents: body.budgetCents,
  autoApprovalThresholdCents: body.autoApprovalThresholdCents ?? null,
  perTransactionLimitCents: null,
  dailySpendLimitCents: null,
  hourlyVelocityLimit: null,
  dailyVelocityLimit: null,
});

const mcpConfig = (mcpUrl: string, apiKey: string) => ({
  mcpServers: {
    "agent-spending-control": {
      type: "http" as const,
      url: `${mcpUrl}/mcp`,
      headers: { Authorization: `Bearer ${apiKey}` },
    },
  },
});
