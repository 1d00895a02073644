import type { AgentCommand } from "../../domain/agent/commands.ts";
import type { Archiver } from "../../domain/agent/archive.ts";
import { isCount, isOneOf, isText, isVariant, optional, orNull } from "./guards.ts";

const isArchiver = isVariant<Archiver, "type">("type", {
  user: {},
  organization_key: { lineageId: isText, balance: isOneOf(["zero", "not_zero", "unreadable"]) },
});

/** Guard of a command to an agent's actor. */
export const isAgentCommand = isVariant<AgentCommand, "kind">("kind", {
  rename: { name: isText },
  authenticate: { keyId: isText },
  mint_key: { keyId: isText },
  revoke_key: { keyId: optional(isText) },
  prove_non_delivery: { lineageId: isText },
  archive: { by: isArchiver },
  confirm_detached: {},
  confirm_record: { revision: isCount },
  confirm_followed: { revision: isCount },
  follow_status: { status: isOneOf(["active", "paused"]), revision: isCount, revokedKeyId: orNull(isText) },
});
