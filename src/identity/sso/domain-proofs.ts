import { Resolver } from "node:dns/promises";
import { z } from "zod";

/** Setting of the DNS servers: `system`, or comma-separated addresses; empty if domains need no proof. */
export const dnsServers = z
  .string()
  .transform((text, check): readonly string[] | null => {
    if (text === "") return null;
    const servers = text === "system" ? [] : text.split(",").map((each) => each.trim());
    try {
      new Resolver().setServers(servers);
      return servers;
    } catch {
      check.addIssue({ code: "custom", message: "Name `system`, or addresses such as `10.0.0.53:53`." });
      return z.NEVER;
    }
  })
  .default(null);

const LOOKUP_TIMEOUT_MS = 1_000;
const LOOKUP_TRIES = 2;

/** Returns the DNS record by which a domain's holder names the organization that may sign in its people. */
const recordOf = (organizationId: string, domain: string) => ({
  name: `_agent-spending-control.${domain}`,
  value: `organization=${organizationId}`,
});

/**
 * Proofs, in DNS, that domains belong to an organization. Without proofs, an organization could name another's domains.
 */
export class DomainProofs {
  readonly #resolver = new Resolver({ timeout: LOOKUP_TIMEOUT_MS, tries: LOOKUP_TRIES });

  /** Takes the servers' addresses in the form of `Resolver.setServers`; if empty, the system's servers are used. */
  constructor(servers: readonly string[]) {
    if (servers.length > 0) this.#resolver.setServers(servers);
  }

  /** Returns the record that one of the domains lacks, in words for the owner who names it, or null. */
  async judge(organizationId: string, domains: readonly string[]): Promise<string | null> {
    const records = domains.map((domain) => recordOf(organizationId, domain));
    const published = await Promise.all(records.map(({ name, value }) => this.#isPublished(name, value)));
    const missing = records.find((_, index) => published[index] !== true);
    if (missing === undefined) return null;
    return `lack the TXT record ${missing.name} with the text ${missing.value}`;
  }

  async #isPublished(name: string, value: string): Promise<boolean> {
    try {
      // A record's text comes in parts of at most 255 bytes.
      return (await this.#resolver.resolveTxt(name)).some((parts) => parts.join("") === value);
    } catch {
      return false;
    }
  }
}
