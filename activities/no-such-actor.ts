/** The agent has no actor, and will not have one again: whoever was to tell it something is done. */
export class NoSuchActor extends Error {
  override readonly name = "NoSuchActor";
}
