import type { Random } from "../random.ts";
import type { ChainProxy } from "./chain-proxy.ts";
import type { ForeignSender } from "./foreign.ts";
import type { Letterbox } from "./letterbox.ts";

/** Addresses of the books, for readers that do not go through the service. */
export interface Addresses {
  readonly mongodbUri: string;
  readonly temporalAddress: string;
  readonly temporalNamespace: string;
  /** The chain itself, not the line that is disturbed. */
  readonly rpcUrl: string;
}

/** A deployment that rounds are played on. */
export interface Site {
  readonly addresses: Addresses;
  /** Settings of its servers and workers. */
  readonly env: NodeJS.ProcessEnv;
  /** Clients go to any. */
  readonly baseUrls: readonly string[];
  readonly letterbox: Letterbox;
  readonly line: ChainProxy;
  /** Processes that ended without being killed, in a line each: no disaster should lead to that. */
  readonly endings: readonly string[];
  /** Reason for which an engine stays down for good; null: none does. */
  readonly fatal: string | null;
  /** Returns the processor time that each component has used so far, in milliseconds. */
  processorMs?(): Readonly<Record<string, number>>;
  /** Begins to ask the engines themselves, beside the service. */
  probe?(): Promise<Probe>;
}

export interface Probe {
  /** Returns the longest time for which an engine answered nothing. */
  stop(): Promise<number>;
}

export interface Struck {
  /** Description of what was done, for people. */
  readonly what: string;
  /** Processes that were killed. */
  readonly kills: number;
  /** Resolves when all that was killed can be used again. */
  readonly over: Promise<unknown>;
}

/** Parts that a disaster acts with besides the deployment. */
export interface Accomplices {
  /** Stops every agent that may be stopped, and starts some again within the time. */
  readonly stopAll: (withinMs: number) => Promise<unknown>;
  readonly foreign: ForeignSender;
  /** Repeats the requests of open purchases, which may wait for that. */
  readonly claimAll: () => Promise<unknown>;
}

export interface Disaster {
  /** Whether the service's clocks stay right. */
  readonly areClocksCorrect: boolean;
  /** Whether every process lives on, so that its processor time can be measured: agents make plain payments only. */
  readonly isQuiet?: boolean;
  /** Does it, at once. */
  strike(accomplices: Accomplices, random: Random): Struck;
}
