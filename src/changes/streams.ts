import type { Db } from "mongodb";
import {
  ADMINS_KINDS,
  CHANGE_KINDS,
  type ChangeKind,
  type StreamEnd,
  WHOLE_ORGANIZATION_KINDS,
} from "../contract/stream.ts";
import { isAdministrative } from "../domain/roles.ts";
import { type Refusal, refusal } from "../domain/errors.ts";
import { ok, refused, type Result } from "../domain/result.ts";
import type { Binding } from "../domain/binding.ts";
import type { SessionPrincipal } from "../identity/session-principal.ts";
import { eventText, retryText } from "./events.ts";
import { type Change, ChangeFeed } from "./feed.ts";
import { ChangeLog } from "./log.ts";
import { type Subscriber, OrganizationStream } from "./organization-stream.ts";
import { positionIn } from "./position.ts";
import type { EventData } from "./records.ts";

/** Maximum open streams of one session at this process. A browser opens at most six connections to a server. */
const OF_A_SESSION_MAX = 8;
const OF_AN_ORGANIZATION_MAX = 500;
const OPEN_MAX = 2_000;
const RETRY_AFTER_SECONDS = 10;
const HEARTBEAT_MS = 15_000;
/** Interval at which a stream's caller is checked: a token expires without a change event. */
const CHECKED_EVERY_MS = 60_000;
/** Time that the feed stays open after the last stream has ended. */
const LINGER_MS = 60_000;
const TICK_MS = 1_000;

export interface StreamConnection {
  send(text: Buffer | string): void;
  /** Sends a last text and closes the connection. */
  end(text: string): void;
  /** Returns null if the caller may still follow the stream, otherwise the reason why not. */
  check(): Promise<StreamEnd | null>;
}

/** A stream that can be opened once, when its connection is ready. */
export interface OpenableStream {
  /**
   * Opens the stream, or refuses if there are too many. The returned function is called once the connection is closed.
   */
  open(line: StreamConnection): Result<() => void>;
}

export interface StreamRequest {
  readonly kinds: readonly ChangeKind[] | null;
  readonly lastEventId: string | null;
}

interface Open extends Subscriber {
  readonly line: StreamConnection;
  readonly principal: SessionPrincipal;
  heartbeatAtMs: number;
  checkAtMs: number;
}

export interface StreamsDependencies {
  readonly db: Db;
  readonly dataOf: EventData;
  readonly onError: (error: unknown) => void;
}

/**
 * All streams of changes of this process: one feed, and a stream for each part of an organization that callers may see.
 */
export class Streams {
  readonly #dependencies: StreamsDependencies;
  readonly #feed: ChangeFeed;
  readonly #log = new ChangeLog();
  /** By organization, then by binding. */
  readonly #organizations = new Map<string, Map<string, OrganizationStream>>();
  readonly #open = new Set<Open>();
  #ticking: NodeJS.Timeout | null = null;
  #closing: NodeJS.Timeout | null = null;
  #isOver = false;

  constructor(dependencies: StreamsDependencies) {
    this.#dependencies = dependencies;
    this.#feed = new ChangeFeed(
      dependencies.db,
      {
        begun: (at) => {
          this.#log.begin(at);
          for (const parts of this.#organizations.values()) for (const each of parts.values()) each.reset();
        },
        changed: (changes) => this.#changed(changes),
        peopleChanged: (sessionIds, userIds) => {
          this.#checkThose(({ sessionId, userId }) => sessionIds.has(sessionId) || userIds.has(userId));
        },
        interrupted: () => this.#checkThose(() => true),
      },
      dependencies.onError,
    );
  }

  get open(): number {
    return this.#open.size;
  }

  /** Prepares a stream for a person; no change from then on is missed. */
  async prepare(principal: SessionPrincipal, request: StreamRequest): Promise<Result<OpenableStream>> {
    const over = this.#refusalFor(principal);
    if (over !== null) return refused(over);
    await this.#feed.open();
    this.#closeLater();
    return ok({ open: (line) => this.#begin(line, principal, request) });
  }

  /** Ends all streams; their clients reconnect to another server. */
  async end(): Promise<void> {
    this.#isOver = true;
    for (const each of this.#open) this.#endOne(each, "restart");
    if (this.#closing !== null) clearTimeout(this.#closing);
    if (this.#ticking !== null) clearInterval(this.#ticking);
    await this.#feed.close();
  }

  #refusalFor({ organizationId, sessionId }: SessionPrincipal): Refusal | null {
    const retry = { retryAfterSeconds: RETRY_AFTER_SECONDS };
    if (this.#isOver || this.#open.size >= OPEN_MAX) {
      return refusal("SERVICE_UNAVAILABLE", undefined, retry);
    }
    let ofSession = 0;
    let ofOrganization = 0;
    for (const { principal } of this.#open) {
      if (principal.sessionId === sessionId) ofSession += 1;
      if (principal.organizationId === organizationId) ofOrganization += 1;
    }
    const isWithin = ofSession < OF_A_SESSION_MAX && ofOrganization < OF_AN_ORGANIZATION_MAX;
    return isWithin ? null : refusal("TOO_MANY_STREAMS", undefined, retry);
  }

  #begin(line: StreamConnection, principal: SessionPrincipal, request: StreamRequest): Result<() => void> {
    const over = this.#refusalFor(principal);
    if (over !== null) return refused(over);
    const now = performance.now();
    const one: Open = {
      line,
      principal,
      kinds: new Set((request.kinds ?? CHANGE_KINDS).filter((kind) => mayReceive(principal, kind))),
      send: (text) => line.send(text),
      // Random, so that heartbeats are spread over time.
      heartbeatAtMs: now + HEARTBEAT_MS * Math.random(),
      checkAtMs: now + CHECKED_EVERY_MS * (0.5 + Math.random() / 2),
    };
    this.#open.add(one);
    this.#ticking ??= setInterval(() => this.#tick(), TICK_MS).unref();
    if (this.#closing !== null) clearTimeout(this.#closing);
    this.#closing = null;
    line.send(retryText());
    this.#follow(one, request.lastEventId);
    return ok(() => this.#close(one));
  }

  #follow(one: Open, lastEventId: string | null): void {
    const organization = this.#organizationOf(one.principal);
    if (lastEventId === null) {
      organization.follow(one);
      one.send(Buffer.from(eventText("ready", { resumed: false }, this.#feed.position)));
      return;
    }
    void this.#resume(one, organization, lastEventId);
  }

  async #resume(one: Open, organization: OrganizationStream, lastEventId: string): Promise<void> {
    const { organizationId } = one.principal;
    const since = positionIn(lastEventId);
    await this.#feed.caughtUp();
    await organization.resume(one, () => (since === null ? null : this.#log.since(organizationId, since)));
    if (!this.#open.has(one)) this.#leave(one);
    // Records could not be read; the client reconnects.
    else if (!organization.has(one)) this.#endOne(one, "restart");
  }

  #organizationOf({ binding, organizationId }: SessionPrincipal): OrganizationStream {
    const parts = this.#organizations.get(organizationId) ?? new Map<string, OrganizationStream>();
    this.#organizations.set(organizationId, parts);
    const known = parts.get(keyOf(binding));
    if (known !== undefined) return known;
    const { dataOf, onError } = this.#dependencies;
    const position = () => this.#feed.position;
    const made = new OrganizationStream({ organizationId, binding, dataOf, position, onError });
    parts.set(keyOf(binding), made);
    return made;
  }

  #partOf({ binding, organizationId }: SessionPrincipal): OrganizationStream | undefined {
    return this.#organizations.get(organizationId)?.get(keyOf(binding));
  }

  #changed(changes: readonly Change[]): void {
    const { openedAt } = this.#feed;
    for (const change of changes) {
      this.#log.add(change);
      if (change.position <= openedAt) continue;
      for (const each of this.#organizations.get(change.organizationId)?.values() ?? []) each.add(change);
    }
  }

  #tick(): void {
    const now = performance.now();
    for (const one of this.#open) {
      if (now >= one.heartbeatAtMs) {
        one.heartbeatAtMs = now + HEARTBEAT_MS;
        const organization = this.#partOf(one.principal);
        if (organization?.has(one) === true) one.line.send(eventText("heartbeat", {}, organization.sentUpTo));
      }
      if (now >= one.checkAtMs) {
        one.checkAtMs = now + CHECKED_EVERY_MS;
        void this.#check(one);
      }
    }
  }

  #checkThose(isAffected: (principal: SessionPrincipal) => boolean): void {
    for (const one of this.#open) if (isAffected(one.principal)) void this.#check(one);
  }

  async #check(one: Open): Promise<void> {
    try {
      const reason = await one.line.check();
      if (reason !== null && this.#open.has(one)) this.#endOne(one, reason);
    } catch (error) {
      this.#dependencies.onError(error);
    }
  }

  #endOne(one: Open, reason: StreamEnd): void {
    this.#close(one);
    one.line.end(retryText() + eventText("end", { reason }));
  }

  #close(one: Open): void {
    if (!this.#open.delete(one)) return;
    this.#leave(one);
    this.#closeLater();
  }

  #leave(one: Open): void {
    const { binding, organizationId } = one.principal;
    const part = this.#partOf(one.principal);
    part?.leave(one);
    for (const { principal } of this.#open) if (this.#partOf(principal) === part) return;
    part?.end();
    const parts = this.#organizations.get(organizationId);
    parts?.delete(keyOf(binding));
    if (parts?.size === 0) this.#organizations.delete(organizationId);
  }

  #closeLater(): void {
    if (this.#open.size > 0 || this.#isOver || this.#closing !== null) return;
    if (this.#ticking !== null) clearInterval(this.#ticking);
    this.#ticking = null;
    this.#closing = setTimeout(() => {
      this.#closing = null;
      if (this.#open.size === 0) void this.#feed.close();
    }, LINGER_MS).unref();
  }
}

const keyOf = (binding: Binding): string => JSON.stringify(binding);

const mayReceive = ({ binding, role }: SessionPrincipal, kind: ChangeKind): boolean =>
  (isAdministrative(role) || !ADMINS_KINDS.has(kind)) &&
  (binding.type === "organization" || !WHOLE_ORGANIZATION_KINDS.has(kind));
