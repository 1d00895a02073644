import type { KeyObject } from "node:crypto";
import { canonicalJson } from "../domain/audit/canonical.ts";
import { hmacSha256 } from "../secrets/master-key.ts";
import { isSameHash } from "../secrets/api-key-hash.ts";
import type { AgentDocument, AgentKeyRecord } from "../store/documents.ts";

/** The part of an agent's record that never changes. */
export type FixedAgent = Pick<
  AgentDocument,
  | "_id"
  | "organizationId"
  | "projectId"
  | "teamId"
  | "scopes"
  | "wallet"
  | "createdBy"
  | "createdByLineage"
  | "createdAt"
>;

type ProvenKey = Pick<AgentKeyRecord, "id" | "hash">;

/**
 * MACs over the parts of an agent's record that its actor does not know: a change in MongoDB alone shows, such as another key's hash
 * or more scopes. Made when the agent or the key is; authentication and `reconcile` check them.
 */
export class AgentProofs {
  readonly #key: KeyObject;

  constructor(key: KeyObject) {
    this.#key = key;
  }

  ofAgent(agent: FixedAgent): string {
    const { _id, createdAt, createdBy, createdByLineage, organizationId, projectId, scopes, teamId, wallet } =
      agent;
    const fixed = { _id, createdBy, createdByLineage, organizationId, projectId, scopes, teamId, wallet };
    return this.#mac({ agent: { ...fixed, createdAt: createdAt.toISOString() } });
  }

  ofKey(agentId: string, { hash, id }: ProvenKey): string {
    return this.#mac({ key: { agentId, hash, id } });
  }

  /** Whether the record is the agent's as it was created, with a key that was minted for it. */
  isGenuine(agent: AgentDocument): boolean {
    const { _id, key, proof } = agent;
    if (key === null || !isSameHash(this.ofKey(_id, key), key.proof)) return false;
    return isSameHash(this.ofAgent(agent), proof);
  }

  #mac(facts: object): string {
    return hmacSha256(this.#key, canonicalJson(facts));
  }
}
