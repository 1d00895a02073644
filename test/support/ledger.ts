import {
  SNAPSHOT_QUERY,
  type AccountSnapshot,
  type SnapshotPage,
  ledgerWorkflowId,
} from "../../src/messages/ledger.ts";
import type { World } from "./world.ts";

/** An agent's account as its project's ledger has it, with what is open; the project is the organization's default one. */
export async function accountSnapshot(
  { organization, service }: Pick<World, "organization" | "service">,
  agentId: string,
): Promise<AccountSnapshot> {
  const handle = service.connections.temporal.workflow.getHandle(ledgerWorkflowId(organization.projectId));
  const { accounts } = await handle.query<SnapshotPage, [object]>(SNAPSHOT_QUERY, {
    after: null,
    limit: 1_000,
  });
  const found = accounts.find((account) => account.agentId === agentId);
  if (found === undefined) throw new Error(`the ledger has no account of ${agentId}`);
  return found;
}
