import { join } from "node:path";
import type { Client } from "@temporalio/client";
import type { Case } from "../cases.ts";
import type { Course } from "../histories.ts";
import type { RequestTemplate } from "../load/messages.ts";

/** Place where the systems run side by side. */
export interface Site {
  readonly mongodbUri: string;
  readonly temporalAddress: string;
  readonly temporalNamespace: string;
  readonly evmRpcUrl: string;
  readonly temporal: Client;
  /** The engines' processes, by name. */
  readonly pids: () => Readonly<Record<string, number | null>>;
  /** Logs go here. */
  readonly dataDir: string;
  readonly profileDir: string | null;
}

/** One of the systems that are compared: a process of its own, with its agents. */
export interface System {
  readonly port: number;
  readonly pid: number | null;
  /** Of the process that it sends webhooks to; not there where it sends none. */
  readonly receiverPid?: number | null;
  /** Returns the requests of a case; called before each measurement. */
  templates(agents: Case["agents"]): Promise<readonly RequestTemplate[]>;
  /**
   * Waits until nothing of the load is left to do, so that it does not count against the next system; in a hurry,
   * only until no money is under way.
   */
  settle(agents: Case["agents"], isQuick: boolean): Promise<void>;
  /** Returns the growth of its actors' histories; null for a system without any, or whose growth is not measured. */
  course(agents: Case["agents"]): Promise<Course | null>;
  /** Returns disagreements between its books and the requests that were answered with success. */
  audit(answered: number): Promise<readonly string[]>;
  stop(): Promise<void>;
}

/** The body of every payment, but for its idempotency key. */
export const ORDER = {
  rail: "card",
  amountCents: 125,
  merchant: "An ordinary merchant",
  purpose: "A payment of the bench",
} as const;

/** A payment from the wallet, to an account on the local chain. */
export const TRANSFER = {
  rail: "wallet",
  amountCents: ORDER.amountCents,
  recipient: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
  purpose: ORDER.purpose,
} as const;

/** The type of the events where only their delivery is measured. */
export const DELIVERED_EVENT = "agent.paused";

/** More than any run spends. */
export const BUDGET_CENTS = 100_000_000_000;

export const MASTER_KEY = "a-master-key-for-the-bench-long-enough-to-be-one";

export const databaseOf = (uri: string, name: string): string => {
  const url = new URL(uri);
  url.pathname = `/${name}`;
  return url.toString();
};

export function portOf(port: number | null): number {
  if (port === null) throw new Error("a system without a port");
  return port;
}

/** The configuration of a service of the bench's own: a database and a task queue of that name on the shared engines. */
export const serviceEnvironment = (site: Site, name: string): NodeJS.ProcessEnv => ({
  MONGODB_URI: databaseOf(site.mongodbUri, name),
  TEMPORAL_ADDRESS: site.temporalAddress,
  TEMPORAL_NAMESPACE: site.temporalNamespace,
  EVM_RPC_URL: site.evmRpcUrl,
  TEMPORAL_TASK_QUEUE: name.replaceAll("_", "-"),
  MASTER_KEY,
  X402_ALLOW_CIDRS: "127.0.0.0/8",
  AUDIT_ANCHOR_FILE: join(site.dataDir, `${name}-anchors.jsonl`),
  PORT: "0",
});
