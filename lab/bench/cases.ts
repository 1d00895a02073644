/** Comparisons: systems, cases and the ratios between them. */

export const SYSTEMS = [
  "bare",
  "payments",
  "unaudited",
  "encrypted",
  "plain",
  "plain-levels",
  "bare-read",
  "key-read",
  "session-read",
  "transfers",
  "wallet",
  "bare-start",
  "creates",
  "capped",
  "large-1000",
  "large-10000",
  "runaway",
  "shops",
  "shops-loop",
  "bare-runs",
  "deliveries",
  "delivered",
  "stuck",
  "waiting",
  "streamed",
] as const;
export type SystemName = (typeof SYSTEMS)[number];

export const SYSTEM_TITLES: Readonly<Record<SystemName, string>> = {
  bare: "bare updates",
  payments: "payments",
  unaudited: "payments without the audit log",
  encrypted: "payments, encrypted in Temporal",
  plain: "plain endpoint",
  "plain-levels": "plain endpoint with three levels",
  "bare-read": "bare read",
  "key-read": "read by a key",
  "session-read": "read by a session",
  transfers: "bare transfers",
  wallet: "wallet payments",
  "bare-start": "bare starts",
  creates: "agent creates",
  capped: "payments under caps",
  "large-1000": "payments among 1,000 agents",
  "large-10000": "payments among 10,000 agents",
  runaway: "payments beside a runaway agent",
  shops: "payments beside slow shops",
  "shops-loop": "payments beside slow shops, callers that never pause",
  "bare-runs": "bare runs",
  deliveries: "webhook deliveries",
  delivered: "payments, each event delivered",
  stuck: "payments beside stuck deliveries",
  waiting: "payments beside calls that wait",
  streamed: "payments beside open pages",
};

export const CASES = [
  "one",
  "spread-16",
  "spread-50",
  "spread-200",
  "hot",
  "read-1",
  "read-50",
  "wallet-1",
  "wallet-16",
  "wallet-spread",
  "create-1",
  "create-16",
  "caps-1",
  "caps-16",
  "caps-50",
  "caps-200",
  "roll-over",
  "runaway-4",
  "shops-16",
  "deliver-1",
  "deliver-50",
  "delivered-16",
  "delivered-50",
  "stuck-1",
  "stuck-16",
  "waiting-16",
  "streamed-16",
  "streamed-50",
] as const;
export type CaseName = (typeof CASES)[number];

export interface Case {
  readonly name: CaseName;
  readonly title: string;
  readonly connections: number;
  readonly systems: readonly SystemName[];
  /** Whether the requests go round all agents, or to a single one. */
  readonly agents: "spread" | "hot";
  /** Measured this many times as long as asked for. */
  readonly lengths: number;
}

const PAYING: readonly SystemName[] = ["bare", "payments", "unaudited", "encrypted", "plain"];
const READING: readonly SystemName[] = ["bare-read", "key-read", "session-read"];

const ON_CHAIN: readonly SystemName[] = ["transfers", "wallet"];
const CREATING: readonly SystemName[] = ["bare-start", "creates"];
const CAPPED: readonly SystemName[] = ["payments", "capped", "plain-levels"];
const LARGE: readonly SystemName[] = ["payments", "large-1000", "large-10000"];
const RUNAWAY: readonly SystemName[] = ["payments", "runaway"];
const SHOPS: readonly SystemName[] = ["payments", "shops", "shops-loop"];
const DELIVERING: readonly SystemName[] = ["bare-runs", "deliveries"];
const NOTIFIED_SYSTEMS: readonly SystemName[] = ["payments", "delivered"];
const STUCK: readonly SystemName[] = ["payments", "stuck"];

const WAITING: readonly SystemName[] = ["payments", "waiting"];
const STREAMED: readonly SystemName[] = ["payments", "streamed"];

/** Agents (actors, documents) that a spread case goes round. */
export const SPREAD_AGENTS = 50;

export const ALL_CASES: Readonly<Record<CaseName, Case>> = {
  one: {
    name: "one",
    title: "1 connection, 50 agents",
    connections: 1,
    systems: PAYING,
    agents: "spread",
    lengths: 1,
  },
  "spread-16": {
    name: "spread-16",
    title: "16 connections, 50 agents",
    connections: 16,
    systems: PAYING,
    agents: "spread",
    lengths: 1,
  },
  "spread-50": {
    name: "spread-50",
    title: "50 connections, 50 agents",
    connections: 50,
    systems: PAYING,
    agents: "spread",
    lengths: 1,
  },
  "spread-200": {
    name: "spread-200",
    title: "200 connections, 50 agents",
    connections: 200,
    systems: PAYING,
    agents: "spread",
    lengths: 1,
  },
  // Long enough for its ledger to roll over.
  hot: {
    name: "hot",
    title: "50 connections, 1 agent",
    connections: 50,
    systems: PAYING,
    agents: "hot",
    lengths: 2,
  },
  "read-1": {
    name: "read-1",
    title: "a read, 1 connection",
    connections: 1,
    systems: READING,
    agents: "spread",
    lengths: 1,
  },
  "read-50": {
    name: "read-50",
    title: "a read, 50 connections",
    connections: 50,
    systems: READING,
    agents: "spread",
    lengths: 1,
  },
  "wallet-1": {
    name: "wallet-1",
    title: "on chain, 1 in flight, 50 wallets",
    connections: 1,
    systems: ON_CHAIN,
    agents: "spread",
    lengths: 1,
  },
  "wallet-16": {
    name: "wallet-16",
    title: "on chain, 16 in flight, 1 wallet",
    connections: 16,
    systems: ON_CHAIN,
    agents: "hot",
    lengths: 1,
  },
  "wallet-spread": {
    name: "wallet-spread",
    title: "on chain, 16 in flight, 50 wallets",
    connections: 16,
    systems: ON_CHAIN,
    agents: "spread",
    lengths: 1,
  },
  "create-1": {
    name: "create-1",
    title: "creates, 1 in flight",
    connections: 1,
    systems: CREATING,
    agents: "spread",
    lengths: 1,
  },
  "create-16": {
    name: "create-16",
    title: "creates, 16 in flight",
    connections: 16,
    systems: CREATING,
    agents: "spread",
    lengths: 1,
  },
  "caps-1": {
    name: "caps-1",
    title: "caps or none, 1 connection",
    connections: 1,
    systems: CAPPED,
    agents: "spread",
    lengths: 1,
  },
  "caps-16": {
    name: "caps-16",
    title: "caps or none, 16 connections",
    connections: 16,
    systems: CAPPED,
    agents: "spread",
    lengths: 1,
  },
  "caps-50": {
    name: "caps-50",
    title: "caps or none, 50 connections",
    connections: 50,
    systems: CAPPED,
    agents: "spread",
    lengths: 1,
  },
  "caps-200": {
    name: "caps-200",
    title: "caps or none, 200 connections",
    connections: 200,
    systems: CAPPED,
    agents: "spread",
    lengths: 1,
  },
  // Long enough for each ledger to roll over some times.
  "roll-over": {
    name: "roll-over",
    title: "through roll-overs, 16 connections",
    connections: 16,
    systems: LARGE,
    agents: "spread",
    lengths: 3,
  },
  "runaway-4": {
    name: "runaway-4",
    title: "beside one that sends 200 at once, 4 connections",
    connections: 4,
    systems: RUNAWAY,
    agents: "spread",
    lengths: 1,
  },
  // Long enough for callers to come again.
  "shops-16": {
    name: "shops-16",
    title: "beside 1,000 callers of slow or endless shops, 16 connections",
    connections: 16,
    systems: SHOPS,
    agents: "spread",
    lengths: 3,
  },
  "deliver-1": {
    name: "deliver-1",
    title: "deliveries, 1 under way",
    connections: 1,
    systems: DELIVERING,
    agents: "spread",
    lengths: 1,
  },
  "deliver-50": {
    name: "deliver-50",
    title: "deliveries, 50 under way",
    connections: 50,
    systems: DELIVERING,
    agents: "spread",
    lengths: 1,
  },
  "delivered-16": {
    name: "delivered-16",
    title: "with deliveries or without, 16 connections",
    connections: 16,
    systems: NOTIFIED_SYSTEMS,
    agents: "spread",
    lengths: 1,
  },
  "delivered-50": {
    name: "delivered-50",
    title: "with deliveries or without, 50 connections",
    connections: 50,
    systems: NOTIFIED_SYSTEMS,
    agents: "spread",
    lengths: 1,
  },
  "stuck-1": {
    name: "stuck-1",
    title: "beside stuck deliveries, 1 connection",
    connections: 1,
    systems: STUCK,
    agents: "spread",
    lengths: 1,
  },
  "stuck-16": {
    name: "stuck-16",
    title: "beside stuck deliveries, 16 connections",
    connections: 16,
    systems: STUCK,
    agents: "spread",
    lengths: 1,
  },
  "waiting-16": {
    name: "waiting-16",
    title: "beside 1,000 calls that wait, 16 connections",
    connections: 16,
    systems: WAITING,
    agents: "spread",
    lengths: 1,
  },
  "streamed-16": {
    name: "streamed-16",
    title: "beside 500 open pages, 16 connections",
    connections: 16,
    systems: STREAMED,
    agents: "spread",
    lengths: 1,
  },
  "streamed-50": {
    name: "streamed-50",
    title: "beside 500 open pages, 50 connections",
    connections: 50,
    systems: STREAMED,
    agents: "spread",
    lengths: 1,
  },
};

/** Result of a load, as the generator saw it. */
export interface LoadMeasured {
  readonly latenciesMs: readonly number[];
  /** Answers other than 2xx, and requests without an answer. */
  readonly errors: number;
  readonly firstError: string | null;
  readonly seconds: number;
}
