import type { AgentCommand } from "../../domain/agent/commands.ts";
import type { Archiver } from "../../domain/agent/archive.ts";
import { isCount, isId, isOneOf, isVariant, optional, orNull, type Variants } from "./guards.ts";
import { isName } from "./payment.ts";

/** Guards for commands to an agent's actor that arrive through Temporal. */

const isArchiver = isVariant<Archiver, "type">("type", {
  user: {},
  organization_key: { lineageId: isId, balance: isOneOf(["zero", "not_zero", "unreadable"]) },
});

const commands: Variants<AgentCommand, "kind"> = {
  rename: { name: isName },
  authenticate: { keyId: isId },
  mint_key: { keyId: isId },
  revoke_key: { keyId: optional(isId) },
  prove_non_delivery: { lineageId: isId },
  archive: { by: isArchiver },
  confirm_detached: {},
  confirm_record: { revision: isCount },
  confirm_followed: { revision: isCount },
  follow_status: { status: isOneOf(["active", "paused"]), revision: isCount, revokedKeyId: orNull(isId) },
};

export const AGENT_COMMAND_KINDS: ReadonlySet<string> = new Set(Object.keys(commands));

export const isAgentCommand = isVariant<AgentCommand, "kind">("kind", commands);
