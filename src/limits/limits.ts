import { createHash } from "node:crypto";
import { z } from "zod";
import {
  ANONYMOUS_PER_MINUTE,
  CARD_MESSAGES_PER_MINUTE,
  DASHBOARD_PER_MINUTE,
  LOGOS_PER_MINUTE,
  MCP_MANAGEMENT_WRITES_PER_MINUTE,
  RATE_CLASSES,
  REGISTRATIONS_PER_MINUTE,
  type RateClass,
  type RouteCap,
} from "../contract/rate-classes.ts";
import type { OperationId } from "../contract/registry.ts";
import type { Refusal } from "../domain/errors.ts";
import { ok, refused, type Result } from "../domain/result.ts";
import { withTimeout } from "../lib/with-timeout.ts";
import type { DeviceTokens, KnownDevice } from "../identity/device-token.ts";
import { EMAIL_UNITS_MAX, normalizeEmail } from "../identity/email.ts";
import type { Organizations } from "../identity/organizations.ts";
import type { SessionPrincipal } from "../identity/session-principal.ts";
import type { Caller } from "../identity/authenticator.ts";
import type { OrganizationKeyPrincipal, Principal } from "../identity/principals.ts";
import { networkAround } from "./address.ts";
import type { Counts } from "./counts.ts";
import { MemoryCounts } from "./memory-counts.ts";
import { firstExceeded, FixedWindowLimiter, type RateLimitStatus } from "./fixed-window-limiter.ts";
import { limitsOf, type PlanLimits, type Surface } from "./plans.ts";

export interface Requester {
  /** Null: anonymous, on a public operation. */
  readonly principal: Principal | null;
  readonly caller: Caller | null;
  readonly address: string;
}

export interface LimitsDependencies {
  readonly counts: Counts;
  readonly clock: () => Date;
  readonly organizations: Organizations;
  readonly devices: Pick<DeviceTokens, "read">;
  /** Called for each request over a limit. */
  readonly onHit: (limit: LimitName) => void;
}

/** Account that an admitted call may use: the one of a known device, or any. */
export interface AdmittedTo {
  readonly onlyUserId: string | null;
}

export type LimitName =
  | Surface
  | "dashboard"
  | "address"
  | "logos"
  | "registrations"
  | "operation"
  | "management_writes"
  | "card_messages";

export type CardMessageKind = keyof typeof CARD_MESSAGES_PER_MINUTE;

/** Timeout for looking up the plan, out of a caller's 5 s. */
const PLAN_LOOKUP_TIMEOUT_MS = 500;

/** Limits per minute, independent of HTTP. */
export class Limits {
  readonly #limiter: FixedWindowLimiter;
  /** In memory, since card networks wait for the answers. */
  readonly #ofConnections: FixedWindowLimiter;
  readonly #organizations: Organizations;
  readonly #devices: Pick<DeviceTokens, "read">;
  readonly #clock: () => Date;
  readonly #onHit: (limit: LimitName) => void;

  constructor({ clock, counts, devices, onHit, organizations }: LimitsDependencies) {
    this.#devices = devices;
    this.#clock = clock;
    this.#limiter = new FixedWindowLimiter(counts, clock);
    this.#ofConnections = new FixedWindowLimiter(new MemoryCounts(), clock);
    this.#organizations = organizations;
    this.#onHit = onHit;
  }

  /** Counts a known caller's requests by its organization's plan; `principal` is null if the caller was refused. */
  async ofCaller(
    surface: Surface,
    caller: Caller,
    principal: Principal | null,
    requests = 1,
  ): Promise<RateLimitStatus> {
    const carries = principal !== null && principal.type !== "agent";
    const limits = carries ? limitsOf(principal.organization) : await this.#planOf(caller);
    return this.#take(surface, `${surface}/${caller.id}`, limits[surface], requests);
  }

  /** Counts a request of a person's dashboard, separately from the plan's limit for API clients. */
  ofDashboard({ id }: Caller): Promise<RateLimitStatus> {
    return this.#take("dashboard", `dashboard/${id}`, DASHBOARD_PER_MINUTE);
  }

  /** Counts a request without a valid credential. */
  ofAddress(address: string): Promise<RateLimitStatus> {
    return this.#take("address", addressName(address), ANONYMOUS_PER_MINUTE);
  }

  ofLogos(address: string): Promise<RateLimitStatus> {
    return this.#take("logos", `logos/${address}`, LOGOS_PER_MINUTE);
  }

  /** Counts a client that registers itself for OAuth. */
  async ofRegistrations(address: string): Promise<RateLimitStatus> {
    const take = (name: string, limit: number) => this.#take("registrations", `registrations/${name}`, limit);
    const ofAddress = await take(address, REGISTRATIONS_PER_MINUTE.address);
    const network = networkAround(address);
    if (ofAddress.exceeded || network === null) return ofAddress;
    return await take(network, REGISTRATIONS_PER_MINUTE.network);
  }

  /** Counts a card connection's genuine message. Returns the refusal of one above the connection's share. */
  async ofCardMessage(kind: CardMessageKind, connectionId: string): Promise<Refusal | null> {
    const limit = CARD_MESSAGES_PER_MINUTE[kind];
    const over = firstExceeded([await this.#ofConnections.consume(`${kind}/${connectionId}`, limit)]);
    if (over !== null) this.#onHit("card_messages");
    return over;
  }

  /** Returns the rate limit status of an address, without counting. */
  statusOfAddress(address: string): Promise<RateLimitStatus> {
    return this.#limiter.peek(addressName(address), ANONYMOUS_PER_MINUTE);
  }

  /** Returns the rate limit status of an address that was not looked up. */
  uncounted(): RateLimitStatus {
    return this.#limiter.unused(ANONYMOUS_PER_MINUTE);
  }

  /**
   * Counts against the operation's limits that are known before its body is read. A request over its address's limit
   * does not count for the network, so that one address does not exhaust its neighbours' limit.
   */
  async routeCaps(id: OperationId, rate: RateClass, { address, caller }: Requester): Promise<Refusal | null> {
    const over = await this.#takeCaps(id, rate, ({ per }) => {
      if (per === "account" || per === "network") return null;
      return per === "credential" && caller !== null ? `credential/${caller.id}` : `address/${address}`;
    });
    const network = networkAround(address);
    if (over !== null || network === null) return over;
    return this.#takeCaps(id, rate, ({ per }) => (per === "network" ? `network/${network}` : null));
  }

  /**
   * Counts against the limits per account: the signed-in user's, or that of the e-mail in the body, known or not.
   * Strangers who exhaust an e-mail's attempts do not lock its person out: a device known to one of its accounts then
   * has as many of its own, for that account alone. So no attacker gets more attempts at another account through their
   * own device.
   */
  async accountCaps(
    id: OperationId,
    rate: RateClass,
    principal: Principal | null,
    body: unknown,
  ): Promise<Result<AdmittedTo>> {
    const over = await this.#takeCaps(id, rate, ({ per }) =>
      per === "account" ? accountOf(principal, body) : null,
    );
    if (over === null) return ok({ onlyUserId: null });
    const device = principal === null ? this.#deviceIn(body) : null;
    if (device === null) return refused(over);
    const ofDevice = await this.#takeCaps(id, rate, ({ per }) =>
      per === "account" ? `device/${device.deviceId}` : null,
    );
    return ofDevice === null ? ok({ onlyUserId: device.userId }) : refused(ofDevice);
  }

  /**
   * Counts a wrong current password among the account's sign-ins, so that a session's thief gets no further attempts by
   * signing in. Not the reverse: strangers' sign-ins must not keep a person from changing their password.
   */
  async wrongPassword({ email }: Pick<SessionPrincipal, "email">): Promise<void> {
    const ofAccount = RATE_CLASSES.signIn.filter(({ per }) => per === "account");
    const name = capName("signIn", emailAccount(email));
    await Promise.all(ofAccount.map(({ perMinute }) => this.#limiter.consume(name, perMinute)));
  }

  #deviceIn(body: unknown): KnownDevice | null {
    const { data } = fromDevice.safeParse(body);
    return data === undefined ? null : this.#devices.read(data.deviceToken, this.#clock());
  }

  /**
   * Counts against the limits on an organization key's writes over MCP. A write over its key's limit does not count for
   * the organization: one runaway key must not stop the others.
   */
  async managementWrite({ keyId, organizationId }: OrganizationKeyPrincipal): Promise<Refusal | null> {
    const { key, organization } = MCP_MANAGEMENT_WRITES_PER_MINUTE;
    const take = (name: string, limit: number) => this.#take("management_writes", name, limit);
    const ofKey = firstExceeded([await take(`mcp-writes/key/${keyId}`, key)]);
    return ofKey ?? firstExceeded([await take(`mcp-writes/organization/${organizationId}`, organization)]);
  }

  /** Returns the organization's plan limits, read here because an agent's key does not carry its organization. */
  async #planOf({ organizationId }: Caller): Promise<PlanLimits> {
    const organization = await withTimeout(PLAN_LOOKUP_TIMEOUT_MS, this.#organizations.of(organizationId));
    if (organization === null) throw new Error(`there is no organization ${organizationId}`);
    return limitsOf(organization);
  }

  async #take(limitName: LimitName, name: string, limit: number, points = 1): Promise<RateLimitStatus> {
    const taken = await this.#limiter.consume(name, limit, points);
    if (taken.exceeded) this.#onHit(limitName);
    return taken;
  }

  /** Counts against every limit for which `whose` returns a name; each operation is counted separately. */
  async #takeCaps(
    id: OperationId,
    rate: RateClass,
    whose: (cap: RouteCap) => string | null,
  ): Promise<Refusal | null> {
    const caps: readonly RouteCap[] = RATE_CLASSES[rate];
    const taken = caps.flatMap((cap) => {
      const name = whose(cap);
      return name === null ? [] : [this.#take("operation", capName(id, name), cap.perMinute)];
    });
    return taken.length === 0 ? null : firstExceeded(await Promise.all(taken));
  }
}

const capName = (id: OperationId, whose: string): string => `cap/${id}/${whose}`;

const addressName = (address: string): string => `address/${address}`;

/** Maximum length of a credential id: WebAuthn's 1,023 bytes in base64url. */
const CREDENTIAL_CHARACTERS_MAX = 1_364;

/**
 * Returns the signed-in user, else the account named by the body: by an e-mail, or by the passkey used to sign in.
 * Hashed, since neither should be stored in counters. A text too long for either names no account.
 */
function accountOf(principal: Principal | null, body: unknown): string | null {
  if (principal?.type === "session") return `user/${principal.userId}`;
  const named = accounts.safeParse(body).data;
  if (named === undefined) return null;
  if ("email" in named) return emailAccount(named.email);
  return `passkey/${hashOf(named.response.id)}`;
}

const emailAccount = (email: string): string => `email/${hashOf(normalizeEmail(email))}`;

const accounts = z.union([
  z.object({ email: z.string().max(EMAIL_UNITS_MAX) }),
  z.object({ response: z.object({ id: z.string().max(CREDENTIAL_CHARACTERS_MAX) }) }),
]);

/** Generous maximum length of a device token. */
const DEVICE_TOKEN_CHARACTERS_MAX = 512;

const fromDevice = z.object({ email: z.string(), deviceToken: z.string().max(DEVICE_TOKEN_CHARACTERS_MAX) });

const hashOf = (text: string): string => createHash("sha256").update(text).digest("base64url");
