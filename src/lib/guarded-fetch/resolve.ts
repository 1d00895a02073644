import { lookup, Resolver } from "node:dns/promises";
import { isClosedName } from "./destination.ts";

const QUERY = { timeout: 1_500, tries: 2 } as const;

/**
 * Resolves a name's addresses. Names of the public internet are resolved by DNS directly: the system's look-up occupies
 * one of the process's few threads for as long as a stranger's name server is silent, and all other look-ups would
 * wait. Names of this machine or its network, which only development allows, use the system's look-up.
 */
export async function resolveHost(host: string): Promise<readonly string[]> {
  if (isClosedName(host)) return (await lookup(host, { all: true })).map(({ address }) => address);
  const resolver = new Resolver(QUERY);
  const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
  return answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
}
