import { Child } from "./child.ts";
import type { Outcome } from "./decisions/ours.ts";

/** How fast the rules alone decide, without an engine, a database or a network. */
export interface DecisionsResult {
  /** Medians over the rounds. */
  readonly perSecond: {
    /** A payment that a ledger judges, without caps: decided, held at all levels, committed. */
    readonly pay: number;
    /** The same under caps over project and team. */
    readonly capped: number;
    /** The verdict alone, which `check_payment` answers. */
    readonly assess: number;
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

/** Rounds of four measurements each, and a warm-up. */
const GRACE_MS = 30_000;

export async function measureDecisions(
  config: DecisionsConfig,
  profileDir: string | null,
): Promise<DecisionsResult> {
  const child = await Child.start({ entry: "processes/decisions.ts", config: null, profileDir });
  try {
    const boundMs = config.rounds * config.seconds * 4_000 + GRACE_MS;
    return await child.request<DecisionsResult>(config, boundMs);
  } finally {
    await child.stop();
  }
}
