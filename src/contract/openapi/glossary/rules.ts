import { cents, note, ULID, type Note } from "./notes.ts";

/** Approval rules and their parameters, and restrictions. */
export const ruleNotes: Readonly<Record<string, Note>> = {
  rules: note("All rules."),
  enabled: note("Whether the rule is active."),
  params: note("The parameters of the rule's type."),
  "rules.id": note("The rule's id; left out for a new rule.", `rule_${ULID}`),
  "params.amountCents": cents("A payment above it is held", 100_000),
  "params.anyOf": note("Any of these."),
  "params.noneOf": note("Any but these; in place of `anyOf`."),
  recipients: note("Lists of recipients."),
  "recipients.only": note("The allowed recipients; null: all.", ["Example Supplies", "host:api.example.com"]),
  "recipients.never": note("Recipients that are forbidden even so.", ["Example Casino"]),
  merchantCategories: note("Lists of merchant categories, four digits each."),
  "merchantCategories.only": note("The allowed categories; null: all.", ["5734"]),
  "merchantCategories.never": note("Categories that are forbidden even so.", ["7995"]),
  uncoded: note("Whether a payment without a category is allowed."),
  rails: note("The list of rails."),
  "rails.only": note("The allowed rails; null: all.", ["card"]),
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
