import type { Archiver, ArchiveRefusalCode } from "./archive.ts";

/** Commands of an agent's actor. An update holds several, which are decided in their order; each has its own reply. */
export type AgentCommand =
  | { readonly kind: "rename"; readonly name: string }
  /** A request came with this key; sent first, while no key of the agent is known to have been used. */
  | { readonly kind: "authenticate"; readonly keyId: string }
  | { readonly kind: "mint_key"; readonly keyId: string }
  /** Revokes the active key; with `keyId`, only that one. */
  | { readonly kind: "revoke_key"; readonly keyId?: string }
  /** A create of this lineage was replayed and is to be answered without its key. */
  | { readonly kind: "prove_non_delivery"; readonly lineageId: string }
  | { readonly kind: "archive"; readonly by: Archiver }
  /** The service has given up its right to spend from the archived agent's wallet. */
  | { readonly kind: "confirm_detached" }
  /** The agent's record shows this revision, and its events are in the journal. */
  | { readonly kind: "confirm_record"; readonly revision: number }
  /** The ledger has followed the agent up to this revision. */
  | { readonly kind: "confirm_followed"; readonly revision: number }
  /** The ledger's account status at `revision`; an older one changes nothing. `revokedKeyId` is revoked. */
  | {
      readonly kind: "follow_status";
      readonly status: "active" | "paused";
      readonly revision: number;
      readonly revokedKeyId: string | null;
    };

export type AgentReply =
  | { readonly kind: "renamed" }
  /** Time of the first use of a key of the agent; null if this key is not the active one. */
  | { readonly kind: "authenticated"; readonly firstUsedAt: number | null }
  /** The minted or revoked key. */
  | { readonly kind: "key"; readonly keyId: string }
  | { readonly kind: "key_exists" }
  | { readonly kind: "no_key" }
  /** `windowOver`: the key can't be delivered any more, by the actor's time. */
  | { readonly kind: "non_delivery"; readonly windowOver: boolean; readonly proven: boolean }
  /** The agent is archived, by this command or (`changed` false) before. */
  | { readonly kind: "archive"; readonly changed: boolean }
  | { readonly kind: "archive_refused"; readonly code: ArchiveRefusalCode }
  /** The agent was archived before, so nothing of it changes any more. */
  | { readonly kind: "archived" }
  | { readonly kind: "confirmed" };

export type AgentCommandOf<K extends AgentCommand["kind"]> = Extract<AgentCommand, { readonly kind: K }>;
