import { PLAN_LIMITS } from "../../src/contract/rate-classes.ts";
import { within } from "../../activities/within.ts";
import type { OrganizationDocument } from "../auth/documents.ts";

/** REST and MCP are counted apart (management-api.md section 8). */
export type Surface = "rest" | "mcp";

/** What one credential may ask per minute. */
export type PlanLimits = Readonly<Record<Surface, number>>;

/** How long a plan may be out of date for an agent's key. */
const KEPT_MS = 10_000;
const ORGANIZATIONS_MAX = 10_000;

/** The part of a caller's 5 s that looking the plan up may take. */
const LOOK_UP_MS = 500;

/** An organization's limits: its plan's, or an enterprise plan's custom ones. */
export function limitsOf({ plan, restPerMinute, mcpPerMinute }: OrganizationDocument): PlanLimits {
  const limits = PLAN_LIMITS[plan];
  if (plan !== "enterprise") return limits;
  return { rest: restPerMinute ?? limits.rest, mcp: mcpPerMinute ?? limits.mcp };
}

export type FindOrganization = (id: string) => Promise<OrganizationDocument | null>;

interface Kept {
  readonly limits: Promise<PlanLimits>;
  readonly until: number;
}

/** The limits of agents' organizations, which their keys don't carry: a read per organization and 10 s, not per request. */
export class Plans {
  readonly #find: FindOrganization;
  readonly #clock: () => Date;
  readonly #kept = new Map<string, Kept>();

  constructor(find: FindOrganization, clock: () => Date) {
    this.#find = find;
    this.#clock = clock;
  }

  of(organizationId: string): Promise<PlanLimits> {
    const now = this.#clock().getTime();
    const known = this.#kept.get(organizationId);
    if (known !== undefined && now < known.until) return known.limits;
    const limits = within(LOOK_UP_MS, this.#read(organizationId));
    this.#keep(organizationId, { limits, until: now + KEPT_MS });
    limits.catch(() => this.#kept.delete(organizationId));
    return limits;
  }

  #keep(organizationId: string, kept: Kept): void {
    // Deleted first, so that the order of the map is that of the reads.
    this.#kept.delete(organizationId);
    const [oldest] = this.#kept.keys();
    if (oldest !== undefined && this.#kept.size >= ORGANIZATIONS_MAX) this.#kept.delete(oldest);
    this.#kept.set(organizationId, kept);
  }

  async #read(organizationId: string): Promise<PlanLimits> {
    const organization = await this.#find(organizationId);
    if (organization === null) throw new Error(`there is no organization ${organizationId}`);
    return limitsOf(organization);
  }
}
