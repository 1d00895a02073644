import { createHash } from "node:crypto";
import { z } from "zod";
import {
  ANONYMOUS_PER_MINUTE,
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
import { firstExceeded, FixedWindowLimiter, type RateLimitStatus } from "./fixed-window-limiter.ts";
import { limitsOf, type PlanLimits, type Surface } from "./plans.ts";

/** Caller of a request and its address. */
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
  /** Called for each request that is over a limit. */
  readonly onHit: (limit: LimitName) => void;
}

/** Accounts that an admitted call may use: any, or the one of a known device. */
export interface AdmittedTo {
  readonly onlyUserId: string | null;
}

/** Limit per minute that a caller exceeded. */
export type LimitName =
  Surface | "dashboard" | "address" | "logos" | "registrations" | "operation" | "management_writes";

/** The part of a caller's 5 s that looking the plan up may take. */
const PLAN_LOOKUP_MS = 500;

/** Limits per minute, independent of HTTP. */
export class Limits {
  readonly #limiter: FixedWindowLimiter;
  readonly #organizations: Organizations;
  readonly #devices: Pick<DeviceTokens, "read">;
  readonly #clock: () => Date;
  readonly #onHit: (limit: LimitName) => void;

  constructor({ clock, counts, devices, onHit, organizations }: LimitsDependencies) {
    this.#devices = devices;
    this.#clock = clock;
    this.#limiter = new FixedWindowLimiter(counts, clock);
    this.#organizations = organizations;
    this.#onHit = onHit;
  }

  /** Counts requests of a known caller by its organization's plan; `principal` is null where it was refused. */
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

  /** Counts a request of a person's dashboard, apart from what their plan allows the API's clients. */
  ofDashboard({ id }: Caller): Promise<RateLimitStatus> {
    return this.#take("dashboard", `dashboard/${id}`, DASHBOARD_PER_MINUTE);
  }

  /** Counts a request that carries no good credential. */
  ofAddress(address: string): Promise<RateLimitStatus> {
    return this.#take("address", addressName(address), ANONYMOUS_PER_MINUTE);
  }

  /** Counts a look-up of a logo. */
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

  /** The rate limit status of an address, without counting. */
  statusOfAddress(address: string): Promise<RateLimitStatus> {
    return this.#limiter.peek(addressName(address), ANONYMOUS_PER_MINUTE);
  }

  /** The rate limit status of an address that was not looked up. */
  uncounted(): RateLimitStatus {
    return this.#limiter.unused(ANONYMOUS_PER_MINUTE);
  }

  /**
   * Takes the operation's caps that are known before its body is read. What is over an address's own takes nothing of its network's, so
   * that one address does not use up what others near it have.
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
   * Takes those that count per account: the signed-in user's, or that of the e-mail in the body, known or not. Strangers who use up an
   * e-mail's tries do not keep its person out: a device that is known to one of its accounts then has as many of its own, and they
   * are for that account alone. So no attacker gets more tries at another account by a device of their own.
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
   * Counts a wrong current password with the sign-ins of its account, so that the thief of a session gets no further tries by
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
   * Takes the caps on an organization key's writes over MCP. A write that is over its key's cap takes no place of the
   * organization's: one key that runs wild must not stop the others.
   */
  async managementWrite({ keyId, organizationId }: OrganizationKeyPrincipal): Promise<Refusal | null> {
    const { key, organization } = MCP_MANAGEMENT_WRITES_PER_MINUTE;
    const take = (name: string, limit: number) => this.#take("management_writes", name, limit);
    const ofKey = firstExceeded([await take(`mcp-writes/key/${keyId}`, key)]);
    return ofKey ?? firstExceeded([await take(`mcp-writes/organization/${organizationId}`, organization)]);
  }

  /** An agent's key does not carry its organization. */
  async #planOf({ organizationId }: Caller): Promise<PlanLimits> {
    const organization = await withTimeout(PLAN_LOOKUP_MS, this.#organizations.of(organizationId));
    if (organization === null) throw new Error(`there is no organization ${organizationId}`);
    return limitsOf(organization);
  }

  async #take(limitName: LimitName, name: string, limit: number, points = 1): Promise<RateLimitStatus> {
    const taken = await this.#limiter.consume(name, limit, points);
    if (taken.exceeded) this.#onHit(limitName);
    return taken;
  }

  /** Takes every cap that `whose` has a name for; each operation counts on its own. */
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

/** Maximum of a credential id: WebAuthn's 1,023 bytes in base64url. */
const CREDENTIAL_CHARACTERS_MAX = 1_364;

/**
 * The signed-in user; else whom the body names: by an e-mail, or by the passkey that is to sign them in. Hashed: neither
 * has any business in counters. A text that is too long for one names no account.
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

/** Maximum length of a device token, with room. */
const DEVICE_TOKEN_CHARACTERS_MAX = 512;

const fromDevice = z.object({ email: z.string(), deviceToken: z.string().max(DEVICE_TOKEN_CHARACTERS_MAX) });

const hashOf = (text: string): string => createHash("sha256").update(text).digest("base64url");
