import type { Unavailable } from "../lib/unavailable.ts";

/** The agent has no actor and never will again: a command for it has nothing left to do. */
export class NoSuchActor extends Error implements Unavailable {
  override readonly name = "NoSuchActor";
  readonly isUnavailable = true;
}
