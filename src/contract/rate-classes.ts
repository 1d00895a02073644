/** A cap of an operation's own, besides the plan's limit. */
export interface RouteCap {
  readonly perMinute: number;
  /**
   * The unit that is counted: a key or person, an address, one person's account, or an IPv6 network (a /48), which
   * holds 65,536 addresses that count separately.
   */
  readonly per: "credential" | "address" | "account" | "network";
}

const MANY_GUESSES: readonly RouteCap[] = [
  { perMinute: 10, per: "address" },
  { perMinute: 10, per: "account" },
];
/** Caps on guesses by strangers: a whole IPv6 network has ten times an address's tries. */
const STRANGERS_GUESSES: readonly RouteCap[] = [...MANY_GUESSES, { perMinute: 100, per: "network" }];
const SENSITIVE: readonly RouteCap[] = [{ perMinute: 30, per: "credential" }];

/** The caps of each class. Every operation counts on its own, whatever others are in its class. */
export const RATE_CLASSES = {
  standard: [],
  signIn: STRANGERS_GUESSES,
  stepUp: MANY_GUESSES,
  password: STRANGERS_GUESSES,
  keyMint: SENSITIVE,
  keyRevoke: SENSITIVE,
  archive: SENSITIVE,
  webhookTest: [{ perMinute: 10, per: "credential" }],
  export: [{ perMinute: 10, per: "credential" }],
  verify: SENSITIVE,
  summary: [{ perMinute: 60, per: "credential" }],
} as const satisfies Record<string, readonly RouteCap[]>;

export type RateClass = keyof typeof RATE_CLASSES;

/** Requests per minute and address that carry no good credential. */
export const ANONYMOUS_PER_MINUTE = 100;

/** Logos per minute and address: a page shows the tiles of a project's 1,000 teams, and browsers keep what they were sent. */
export const LOGOS_PER_MINUTE = 1_200;

/** Registrations of OAuth clients per minute: each is stored for a day. */
export const REGISTRATIONS_PER_MINUTE = { address: 10, network: 100 } as const;

/** Limits of a plan per minute and credential. */
export const PLAN_LIMITS = {
  free: { rest: 100, mcp: 60 },
  pro: { rest: 1_000, mcp: 600 },
  enterprise: { rest: 5_000, mcp: 3_000 },
} as const;

/** Calls of the dashboard per minute and person, on every plan: clicks and API clients never share a limit. */
export const DASHBOARD_PER_MINUTE = 1_000;

/** Writes over MCP by organizations' keys, beyond the plan's limit. Refused ones count, too. */
export const MCP_MANAGEMENT_WRITES_PER_MINUTE = { key: 20, organization: 40 } as const;
