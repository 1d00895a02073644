import { IANAZone } from "luxon";
import { z } from "zod";
import { referred } from "./reference.ts";

/** Names begin with a letter; an offset like +02:00, which some versions of Node take for a zone, is none. */
const NAME = /^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/;

/** An IANA time zone that this machine's data knows. */
export const timezone = referred(
  z
    .string()
    .refine((name) => NAME.test(name) && IANAZone.isValidZone(name), "must be an IANA time zone")
    .meta({ description: "IANA time zone, like Europe/Berlin." }),
  // No pattern beside it: one that is wider than the names that there are would say that others are good.
  { keywords: { format: "iana-time-zone" } },
);
