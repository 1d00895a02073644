import { cents, note, ULID, type Note } from "./notes.ts";

/** Approval rules and their parameters. */
export const ruleNotes: Readonly<Record<string, Note>> = {
  rules: note("All rules."),
  enabled: note("Whether the rule is active."),
  params: note("The parameters of the rule's type."),
  "rules.id": note("The rule's id; left out for a new rule.", `rule_${ULID}`),
  "params.amountCents": cents("A payment above it is held", 100_000),
  "params.anyOf": note("Any of these."),
  count: note("This many payments are allowed; the next one is held.", 10),
  windowSeconds: note("The length of the window, in seconds.", 3_600),
  timezone: note("IANA time zone.", "Europe/Berlin"),
  days: note("The weekdays; for a window over midnight, the day on which it begins.", [
    "mon",
    "tue",
    "wed",
    "thu",
    "fri",
  ]),
  "params.from": note("The start, HH:MM, inclusive.", "09:00"),
  "params.to": note("The end, HH:MM up to 24:00, exclusive; earlier than `from`: over midnight.", "17:30"),
  outside: note("true: payments outside the window are held; false: payments inside."),
};
