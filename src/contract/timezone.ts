import { z } from "zod";
import { referred } from "./reference.ts";
import { TIMEZONE_LINKS } from "./timezone-links.ts";

/** IANA's spelling of each name, by lower-case name. Built on first use. */
let spellings: ReadonlyMap<string, string> | undefined;

/** Whether this machine's data has a link, for the links checked so far. Limited by the number of links. */
const tried = new Map<string, boolean>();

/**
 * Returns IANA's spelling of a time zone's name given in any case; undefined if there is no such zone or this machine's
 * data lacks it. Anything cached by zone must use this spelling: there are about 600 zones, but millions of spellings
 * that differ only in case.
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

/** An IANA time zone known to this machine, in any case; stored and returned in IANA's spelling. */
export const timezone = referred(
  z
    .string()
    .refine((name) => timezoneNamed(name) !== undefined, "must be an IANA time zone")
    .overwrite((name) => timezoneNamed(name) ?? name)
    .meta({ description: "IANA time zone, like Europe/Berlin." }),
  // No pattern: one wider than the list of names would accept invalid names.
  { keywords: { format: "iana-time-zone" } },
);
