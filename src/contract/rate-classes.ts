/** An operation's own rate limit, in addition to the plan's. */
export interface RouteCap {
  readonly perMinute: number;
  /**
   * Unit of counting: a key or person, an address, one person's account, or an IPv6 network (a /48), whose
   * 65,536 subnets would otherwise count separately.
   */
  readonly per: "credential" | "address" | "account" | "network";
}

const MANY_GUESSES: readonly RouteCap[] = [
  { perMinute: 10, per: "address" },
  { perMinute: 10, per: "account" },
];
/** Limits on strangers' guesses: a whole IPv6 network has ten times an address's attempts. */
const STRANGERS_GUESSES: readonly RouteCap[] = [...MANY_GUESSES, { perMinute: 100, per: "network" }];
const SENSITIVE: readonly RouteCap[] = [{ perMinute: 30, per: "credential" }];

/** The limits of each class. Every operation is counted separately, even within a class. */
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

/** Maximum requests per minute and address without a valid credential. */
export const ANONYMOUS_PER_MINUTE = 100;

/** Maximum logos per minute and address: a page shows the tiles of a project's 1,000 teams, and browsers cache them. */
export const LOGOS_PER_MINUTE = 1_200;

/** Maximum registrations of OAuth clients per minute. Each is stored for a day. */
export const REGISTRATIONS_PER_MINUTE = { address: 10, network: 100 } as const;

/**
 * Messages of one card connection per minute, counted by each process. An event is a read of the issuer, which takes
 * about 100 calls a second; deposits are stored.
 */
export const CARD_MESSAGES_PER_MINUTE = { authorizations: 6_000, events: 6_000, deposits: 60 } as const;

/** Requests per minute and credential, by plan. */
export const PLAN_LIMITS = {
  free: { rest: 100, mcp: 60 },
  pro: { rest: 1_000, mcp: 600 },
  enterprise: { rest: 5_000, mcp: 3_000 },
} as const;

/** Dashboard calls per minute and person, on every plan: clicks and API clients never share a limit. */
export const DASHBOARD_PER_MINUTE = 1_000;

/** Writes over MCP by organizations' keys, in addition to the plan's limit. Refused writes count. */
export const MCP_MANAGEMENT_WRITES_PER_MINUTE = { key: 20, organization: 40 } as const;
