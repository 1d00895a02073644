/** Key state that an agent's actor knows: ids and times, never a value or a hash. */
export interface AgentAccess {
  /** Null if the agent has no active key. */
  activeKeyId: string | null;
  /** Key revoked last, so that a repeated mint does not bring it back; null if none was revoked. */
  revokedKeyId: string | null;
  /** Key that came with the create. */
  bundled: BundledKey;
  /** Whether a person ever minted or revoked a key. */
  touchedByPerson: boolean;
  /** Time of the first use of a key; null if none was used. */
  authenticatedAt: number | null;
}

export interface BundledKey {
  readonly keyId: string;
  /** Lineage of the organization key that created the agent, which survives rotation; null for a person. */
  readonly lineageId: string | null;
  /** End of the window in which a replay of the create delivers the key again; epoch milliseconds. */
  readonly deliverableUntil: number;
  /** Whether the key's sealed form has been permanently erased. */
  erased: boolean;
  /** Time of a replay that was answered without the key, after the delivery window; null if there was none. */
  provenAt: number | null;
}

export type FirstKey = Pick<BundledKey, "keyId" | "lineageId" | "deliverableUntil">;

export const initialAccess = (first: FirstKey): AgentAccess => ({
  activeKeyId: first.keyId,
  revokedKeyId: null,
  bundled: { ...first, erased: false, provenAt: null },
  touchedByPerson: false,
  authenticatedAt: null,
});

/** Whether a replay may deliver the key again; checked each time, independent of the erasing timer. */
export const isDeliverable = (deliverableUntil: number, now: number): boolean => now < deliverableUntil;
