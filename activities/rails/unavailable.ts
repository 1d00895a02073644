import type { RailPort } from "../ports.ts";

/** A rail that is not set up: every payment on it fails, and nothing is ever sent. */
export const unavailableRail: RailPort = {
  capabilities: { finality: "instant", reversible: false },
  send: () =>
    Promise.resolve({
      status: "failed",
      code: "RAIL_UNAVAILABLE",
      reason: "This payment rail is not available.",
    }),
  query: () => Promise.resolve(null),
  settle: () => Promise.resolve(null),
  reverse: () => Promise.resolve("not_reversible"),
  balance: () => Promise.resolve({ kind: "none" }),
  detach: () => Promise.resolve("detached"),
};
