import { Child } from "./child.ts";
import type { Outcome } from "./decisions/ours.ts";

/** How fast the rules alone decide, without an engine, a database or a network. */
export interface DecisionsResult {
  /** Medians over the rounds. */
  readonly perSecond: {
    /** `handle` of a payment: decided, reserved, its key remembered. */
    readonly pay: number;
    /** `decide` of a payment, pure: key, limits, threshold, what follows and the answer; nothing is changed. */
    readonly decide: number;
    /** The verdict alone, which `check_payment` answers. */
    readonly assess: number;
    /** A project's budget that hears a report and judges what it asks by two caps. */
    readonly budget: number;
    /** The same verdict by Cedar in this process. */
    readonly cedar: number;
  };
  readonly outcomes: Readonly<Record<Outcome, number>>;
  /** Verdicts that were not Cedar's. */
  readonly differing: number;
}

export interface DecisionsConfig {
  readonly rounds: number;
  readonly seconds: number;
}

/** Rounds of five measurements each, and a warm-up. */
const GRACE_MS = 30_000;

export async function measureDecisions(
  config: DecisionsConfig,
  profileDir: string | null,
): Promise<DecisionsResult> {
  const child = await Child.start({ entry: "processes/decisions.ts", config: null, profileDir });
  try {
    const boundMs = config.rounds * config.seconds * 5_000 + GRACE_MS;
    return await child.request<DecisionsResult>(config, boundMs);
  } finally {
    await child.stop();
  }
}
