import type { RailPort } from "../ports.ts";

/** A rail that is not set up: every payment on it fails, and nothing is ever sent. */
export const unavailableRail: RailPort = {
  send: () =>
    Promise.resolve({
      status: "failed",
      code: "RAIL_UNAVAILABLE",
      reason: "This payment rail is not available.",
    }),
  query: () => Promise.resolve(null),
};
