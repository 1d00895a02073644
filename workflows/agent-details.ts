import type { AgentAccess, BundledKey } from "../src/domain/agent/access.ts";
import { type AgentState, lifecycleOf } from "../src/domain/agent/state.ts";
import { STATE_QUERY } from "../src/messages/agent.ts";
import { shownName } from "./shown-name.ts";

/** Describes the agent for an operator, without amounts or secrets. */
export function describeAgent(state: AgentState): string {
  const { access, archivedAt, profile, walletDetached } = state;
  const lines = [
    `Agent **${shownName(profile.name)}** (\`${profile.agentId}\`) is **${lifecycleOf(state)}**. Its money is in the ledger of project \`${profile.projectId}\`; the query \`${STATE_QUERY}\` shows its keys and its end.`,
  ];
  if (archivedAt !== null) {
    lines.push(walletDetached ? "Its wallet is detached." : "Its wallet is still to be detached.");
  }
  lines.push(
    access.activeKeyId === null ? "It has no active key." : `Its key is \`${access.activeKeyId}\`.`,
    describeFirstUse(access),
    describeWindow(access.bundled),
  );
  return lines.join("\n\n");
}

/** Describes the first use, which decides whether a machine may archive what it created. */
function describeFirstUse({ authenticatedAt, bundled }: AgentAccess): string {
  if (bundled.lineageId === null) return "Only a person may archive it.";
  return authenticatedAt === null
    ? "No key of it was ever used."
    : `A key of it was first used at ${iso(authenticatedAt)}.`;
}

function describeWindow({ deliverableUntil, erased, lineageId, provenAt }: BundledKey): string {
  const until = iso(deliverableUntil);
  if (lineageId === null)
    return erased
      ? "A person created it."
      : `A person created it; a create that was not committed is discarded at ${until}.`;
  const window = erased
    ? `The first key could be delivered again until ${until}; its sealed form is erased.`
    : `The first key can be delivered again until ${until}; a timer erases its sealed form then.`;
  const proof =
    provenAt === null ? "No proof of non-delivery." : `Non-delivery was proven at ${iso(provenAt)}.`;
  return `${window} ${proof}`;
}

const iso = (at: number): string => new Date(at).toISOString();
