import { traceHeaders } from "../lib/tracing.ts";
import { createHash } from "node:crypto";
import { Agent, request } from "node:http";
import type { LedgerCommand } from "../domain/ledger/commands.ts";
import type { ProjectRef } from "../messages/ledger.ts";
import type { LiveServer } from "../store/servers.ts";
import { ActorUnavailable } from "./actor-unavailable.ts";
import type { Forwarded, ForwardSeals } from "./forwarding.ts";

/** Path of forwarded commands on a server's internal port. */
export const FORWARD_PATH = "/ledger-commands";

/**
 * Interval of the heartbeats that a server sends while it works on forwarded commands, and the number of missed ones
 * after which it counts as hung. Counted in this process's own timer ticks, so that a process that was suspended itself
 * counts only one.
 */
export const BEAT_MS = 250;
const MAX_SILENT_BEATS = 4;

/** Timeout of forwarded commands; their callers have been answered 503 by then. */
const FORWARD_TIMEOUT_MS = 5_000;

const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

const LIVE_REFRESH_MS = 1_000;
/** Maximum age of the list of live servers; an older one is not used. */
const LIVE_EXPIRY_MS = 6_000;

/** Pause before a server that did not respond is tried again; doubled with each failure. */
const DOWN_MS = 2_000;
const DOWN_DOUBLINGS_MAX = 5;

/** No usable response came back: the commands may or may not have been decided. */
export class NotForwarded extends Error {
  override readonly name = "NotForwarded";
}

/** Another server, which batches the commands of all servers for a ledger. */
export interface LedgerPeer {
  /** Throws `NotForwarded`, or `ActorUnavailable` if it is too late to send the commands another way. */
  submit(commands: readonly LedgerCommand[]): Promise<Forwarded>;
}

/** Selects the server through which a project's commands go; null if this process sends them to the ledger itself. */
export interface LedgerRoute {
  peerFor(project: ProjectRef): LedgerPeer | null;
}

export const ALONE: LedgerRoute = { peerFor: () => null };

export interface LedgerPeersDependencies {
  /** Id under which this process accepts forwarded commands; it may accept none. */
  readonly ownId: string;
  readonly live: () => Promise<readonly LiveServer[]>;
  readonly seals: ForwardSeals;
  readonly monotonicMs: () => number;
  readonly onForwarded: (outcome: "answered" | "failed") => void;
  readonly onError: (message: string, error: unknown) => void;
}

/**
 * Sends the commands for a ledger through one of the live servers, chosen by rendezvous hashing and so the same from
 * every server, so that they share the ledger's updates. Correctness does not depend on it: servers that disagree about
 * which are live, or can't reach that server, send to the ledger themselves, and the ledger deduplicates commands by
 * id.
 */
export class LedgerPeers implements LedgerRoute {
  readonly #dependencies: LedgerPeersDependencies;
  readonly #agent = new Agent({ keepAlive: true });
  #live: readonly LiveServer[] = [];
  #liveSinceMs = -Infinity;
  #askedAtMs = -Infinity;
  readonly #down = new Map<string, { readonly failures: number; readonly untilMs: number }>();

  constructor(dependencies: LedgerPeersDependencies) {
    this.#dependencies = dependencies;
  }

  peerFor(project: ProjectRef): LedgerPeer | null {
    const now = this.#dependencies.monotonicMs();
    if (now - this.#askedAtMs >= LIVE_REFRESH_MS) void this.refresh();
    if (now - this.#liveSinceMs > LIVE_EXPIRY_MS) return null;
    const usable = this.#live.filter(({ id }) => (this.#down.get(id)?.untilMs ?? 0) <= now);
    const owner = ownerOf(project.projectId, usable);
    if (owner === null || owner.id === this.#dependencies.ownId) return null;
    return { submit: (commands) => this.#forward(owner, project, commands) };
  }

  /** Reads the list of live servers. After a failure, it is read again with a later command. */
  async refresh(): Promise<void> {
    this.#askedAtMs = this.#dependencies.monotonicMs();
    try {
      const live = await this.#dependencies.live();
      this.#live = live;
      this.#liveSinceMs = this.#dependencies.monotonicMs();
      for (const id of this.#down.keys()) if (!live.some((server) => server.id === id)) this.#down.delete(id);
    } catch (error) {
      this.#dependencies.onError("the list of servers could not be read", error);
    }
  }

  close(): void {
    this.#agent.destroy();
  }

  async #forward(
    server: LiveServer,
    project: ProjectRef,
    commands: readonly LedgerCommand[],
  ): Promise<Forwarded> {
    const { onError, onForwarded, seals } = this.#dependencies;
    try {
      const { nonce, sealed } = seals.sealCommands(server.id, { project, commands });
      const answer = seals.openAnswer(nonce, await this.#post(server.url, sealed), commands.length);
      onForwarded("answered");
      if (isCutOff(answer)) this.#pause(server);
      else this.#down.delete(server.id);
      return answer;
    } catch (cause) {
      onForwarded("failed");
      onError(`commands were not forwarded to ${server.url}`, cause);
      this.#pause(server);
      if (cause instanceof ActorUnavailable) throw cause;
      throw new NotForwarded("the server that commands were forwarded to did not respond", { cause });
    }
  }

  /** Pauses a server. Requests that were in flight together and failed together count as one failure. */
  #pause({ id }: LiveServer): void {
    const { failures, untilMs } = this.#down.get(id) ?? { failures: 0, untilMs: 0 };
    const now = this.#dependencies.monotonicMs();
    if (untilMs > now) return;
    const pauseMs = DOWN_MS * 2 ** Math.min(failures, DOWN_DOUBLINGS_MAX);
    this.#down.set(id, { failures: failures + 1, untilMs: now + pauseMs });
  }

  #post(url: string, body: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const length = { "content-length": Buffer.byteLength(body) };
      const headers = { "content-type": "text/plain", ...length, ...traceHeaders() };
      const sent = request(new URL(FORWARD_PATH, url), { method: "POST", agent: this.#agent, headers });
      const tooLate = new ActorUnavailable("the server that commands were forwarded to takes too long");
      const whole = setTimeout(() => sent.destroy(tooLate), FORWARD_TIMEOUT_MS);
      let silentBeats = 0;
      const beats = setInterval(() => {
        silentBeats += 1;
        if (silentBeats >= MAX_SILENT_BEATS) sent.destroy(new Error("silent"));
      }, BEAT_MS);
      sent.on("close", () => {
        clearTimeout(whole);
        clearInterval(beats);
        reject(new Error("closed without a response"));
      });
      sent.on("error", reject);
      sent.on("response", (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => {
          silentBeats = 0;
          text = (text + part).trimStart();
          if (text.length > MAX_ANSWER_BYTES) sent.destroy(new Error("response too long"));
        });
        response.on("error", reject);
        response.on("end", () => {
          if (response.statusCode === 200 && response.complete) resolve(text);
          else reject(new Error(`status ${String(response.statusCode)}`));
        });
      });
      sent.end(body);
    });
  }
}

/** Whether the server itself can't reach the ledger, or is overloaded. */
const isCutOff = ({ replies }: Forwarded): boolean =>
  replies.length > 0 &&
  replies.every((reply) => "failure" in reply && reply.failure.name === "ActorUnavailable");

/** Returns the server with the highest hash for the project, so that changes move few projects; null for none. */
function ownerOf(projectId: string, servers: readonly LiveServer[]): LiveServer | null {
  let owner: LiveServer | null = null;
  let highest = "";
  for (const server of servers) {
    const hash = createHash("sha256").update(`${server.id} ${projectId}`).digest("hex");
    if (hash <= highest) continue;
    highest = hash;
    owner = server;
  }
  return owner;
}
