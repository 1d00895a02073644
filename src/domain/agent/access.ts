/** Key state that an agent's actor knows: ids and times, never a value or a hash. */
export interface AgentAccess {
  /** Null: the agent has no active key. */
  activeKeyId: string | null;
  /** The key that was revoked last: its mint, repeated by the engine, does not bring it back. Null: none was. */
  revokedKeyId: string | null;
  /** The key that came with the create. */
  bundled: BundledKey;
  /** Whether a person ever minted or revoked a key. */
  touchedByPerson: boolean;
  /** Time of the key's first use; null if it was never used. */
  authenticatedAt: number | null;
}

export interface BundledKey {
  readonly keyId: string;
  /**
   * Lineage of the organization key that created the agent; it survives the key's rotation. Null if a person created
   * the agent.
   */
  readonly lineageId: string | null;
  /** The end of the window in which a replay of the create delivers the key again; epoch milliseconds. */
  readonly deliverableUntil: number;
  /** Whether the key's sealed form is erased for good. */
  erased: boolean;
  /** Time of a replay that was answered without the key, after the delivery window; null if there was none. */
  provenAt: number | null;
}

/** The key that an agent is created with. */
export type FirstKey = Pick<BundledKey, "keyId" | "lineageId" | "deliverableUntil">;

export const initialAccess = (first: FirstKey): AgentAccess => ({
  activeKeyId: first.keyId,
  revokedKeyId: null,
  bundled: { ...first, erased: false, provenAt: null },
  touchedByPerson: false,
  authenticatedAt: null,
});

/**
 * Whether a replay of the create may deliver the key again. Checked at the moment of delivery: the timer that erases the sealed
 * key is not relied on.
 */
export const isDeliverable = (deliverableUntil: number, now: number): boolean => now < deliverableUntil;
