import { z } from "zod";
import { referred } from "./reference.ts";
import { TIMEZONE_LINKS } from "./timezone-links.ts";

/** IANA's spelling of each name, by the name in lower case. Made on first use. */
let spellings: ReadonlyMap<string, string> | undefined;

/** Links that this machine's data turned out to have, or not to have. As many as there are links, at the most. */
const tried = new Map<string, boolean>();

/**
 * An IANA time zone's name as IANA spells it, in whatever case it comes; undefined where there is no such zone, or this
 * machine's data does not know it. Whatever is kept by zone is kept by this name: there are some 600, but each in millions
 * of spellings that only differ in case.
 */
export function timezoneNamed(name: string): string | undefined {
  const known = (spellings ??= spelled()).get(name.toLowerCase());
  return known !== undefined && isInData(known) ? known : undefined;
}

function spelled(): ReadonlyMap<string, string> {
  const names = Intl.supportedValuesOf("timeZone");
  for (const name of names) tried.set(name, true);
  return new Map([...TIMEZONE_LINKS, ...names].map((name) => [name.toLowerCase(), name]));
}

function isInData(name: string): boolean {
  const isKnown = tried.get(name) ?? isZone(name);
  tried.set(name, isKnown);
  return isKnown;
}

function isZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat("en-US", { timeZone: name }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}

/** An IANA time zone that this machine's data knows, in any case; kept and answered as IANA spells it. */
export const timezone = referred(
  z
    .string()
    .refine((name) => timezoneNamed(name) !== undefined, "must be an IANA time zone")
    .overwrite((name) => timezoneNamed(name) ?? name)
    .meta({ description: "IANA time zone, like Europe/Berlin." }),
  // Has no pattern: one that is wider than the list of names would accept others.
  { keywords: { format: "iana-time-zone" } },
);
