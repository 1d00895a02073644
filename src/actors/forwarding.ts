import { randomUUID } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Fill } from "../domain/ledger/capacity.ts";
import type { LedgerCommand, LedgerReply } from "../domain/ledger/commands.ts";
import type { AccountSummary } from "../domain/ledger/state.ts";
import { isArrayOf, isFields, isText } from "../messages/guards/guards.ts";
import { ActorUnavailable, LedgerLost, StaleLedger, StaleRecords } from "./actor-unavailable.ts";
import { isUnavailable } from "../lib/unavailable.ts";
import type { ProjectRef } from "../messages/ledger.ts";
import type { Sealer } from "../secrets/sealer.ts";

/** Maximum age of forwarded commands, also into the future. Nonces are remembered for twice as long. */
const MAX_AGE_MS = 30_000;
const REMEMBERED_MAX = 200_000;

const COMMANDS = "forwarded-commands";
const ANSWER = "forwarded-answer";

/** Failure of a command that the ledger did not answer. */
export interface ForwardedFailure {
  readonly failure: {
    readonly name: string;
    readonly message: string;
    /** Whether the command may be repeated. */
    readonly isUnavailable: boolean;
  };
}

const UNAVAILABLE = [ActorUnavailable, LedgerLost, StaleLedger, StaleRecords] as const;

/** Converts an error into a failure for the server that forwarded the command. */
export const failureFor = (error: unknown): ForwardedFailure => ({
  failure: {
    name: error instanceof Error ? error.name : "Error",
    message: error instanceof Error ? error.message : String(error),
    isUnavailable: isUnavailable(error),
  },
});

/** Converts a failure back into an error for the caller. */
export function failureOf({ failure: { isUnavailable: canRetry, message, name } }: ForwardedFailure): Error {
  if (!canRetry) return new Error(message);
  const Known = UNAVAILABLE.find((each) => each.name === name) ?? ActorUnavailable;
  return new Known(message);
}

/** Response of the server that commands were forwarded to. */
export interface Forwarded {
  /** Replies to the commands, in order. */
  readonly replies: readonly (LedgerReply | ForwardedFailure)[];
  /** Accounts that the commands have changed. The forwarding server writes their records. */
  readonly accounts: readonly AccountSummary[];
  /** Counts of closed payments by agent, as in the ledger's response. */
  readonly closed: Readonly<Record<string, number>>;
  /** Null if the ledger has answered none of the commands. */
  readonly fill: Fill | null;
}

export interface ForwardedCommands {
  readonly project: ProjectRef;
  readonly commands: readonly LedgerCommand[];
}

/** Decrypted commands, and the nonce that their response is bound to. */
export interface OpenedCommands extends ForwardedCommands {
  readonly nonce: string;
}

/** A message that was not just sent by a server of this service, or that arrived twice. */
export class ForgedCall extends Error {
  override readonly name = "ForgedCall";
}

/** Checks only the outline. The ledger refuses invalid commands one by one, so that they fail no others. */
const isCommand = (value: unknown): value is LedgerCommand =>
  isFields(value) && typeof value["kind"] === "string";

const isCommands = isArrayOf(isCommand);

/** Checks only the outline: a server of the same version sealed the message. */
const isForwarded = (value: unknown, commands: number): value is Forwarded =>
  isFields(value) &&
  Array.isArray(value["replies"]) &&
  value["replies"].length === commands &&
  value["replies"].every(isFields) &&
  Array.isArray(value["accounts"]) &&
  isFields(value["closed"]);

/**
 * Seals commands between servers, and their responses, with authenticated encryption under a key derived from the
 * master key. Commands are bound to one receiving server, valid for some seconds and accepted once; a response is bound
 * to its commands.
 */
export class ForwardSeals {
  readonly #sealer: Pick<Sealer, "open" | "seal">;
  readonly #now: () => number;
  readonly #seen = new LRUCache<string, true>({ max: REMEMBERED_MAX, ttl: 2 * MAX_AGE_MS });

  constructor(sealer: Pick<Sealer, "open" | "seal">, now: () => number) {
    this.#sealer = sealer;
    this.#now = now;
  }

  sealCommands(serverId: string, forwarded: ForwardedCommands): { sealed: string; nonce: string } {
    const nonce = randomUUID();
    const text = JSON.stringify({ ...forwarded, nonce, sentAt: this.#now() });
    return { sealed: this.#sealer.seal(COMMANDS, serverId, text), nonce };
  }

  /** Throws `ForgedCall`, or the sealer's error. */
  openCommands(serverId: string, sealed: string): OpenedCommands {
    const opened: unknown = JSON.parse(this.#sealer.open(COMMANDS, serverId, sealed));
    if (!isFields(opened)) throw new ForgedCall("not a message of this version");
    const { commands, nonce, project, sentAt } = opened;
    if (typeof sentAt !== "number" || Math.abs(this.#now() - sentAt) > MAX_AGE_MS)
      throw new ForgedCall("sent too long ago, or the servers' clocks differ");
    if (!isText(nonce) || this.#seen.has(nonce)) throw new ForgedCall("received before");
    this.#seen.set(nonce, true);
    if (!isFields(project) || !isText(project["organizationId"]) || !isText(project["projectId"]))
      throw new ForgedCall("names no project");
    if (!isCommands(commands)) throw new ForgedCall("has commands that are not of this version");
    const { organizationId, projectId } = project;
    return { nonce, project: { organizationId, projectId }, commands };
  }

  sealAnswer(nonce: string, answer: Forwarded): string {
    return this.#sealer.seal(ANSWER, nonce, JSON.stringify(answer));
  }

  /** Throws if this is not the response to `commands` commands. */
  openAnswer(nonce: string, sealed: string, commands: number): Forwarded {
    const opened: unknown = JSON.parse(this.#sealer.open(ANSWER, nonce, sealed));
    if (!isForwarded(opened, commands)) throw new ForgedCall("not an answer of this version");
    return opened;
  }
}
