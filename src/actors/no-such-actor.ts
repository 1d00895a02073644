import type { Unavailable } from "../lib/unavailable.ts";

/** The agent has no actor, and will not have one again: whoever was to tell it something is done. */
export class NoSuchActor extends Error implements Unavailable {
  override readonly name = "NoSuchActor";
  readonly isUnavailable = true;
}
