import { EXAMPLE_ID, note, type Note } from "./notes.ts";

export const errorNotes: Readonly<Record<string, Note>> = {
  error: note("The stable code."),
  message: note("The error in words; it may change.", "The resource does not exist."),
  issues: note("Each problem, with the path of the field."),
  path: note("The path of the field, dotted.", "binding.id"),
  "ErrorBody.challenge": note("The text that the owner of wallets signs."),
  requiredScope: note("The scope that the key lacks.", "agents:write"),
  missing: note("Children that the request does not name.", [EXAMPLE_ID]),
  unknown: note("Ids in the request that are not children, or are repeated.", [EXAMPLE_ID]),
  organizations: note("The organizations to choose from.", [{ id: EXAMPLE_ID, name: "Analytical Engines" }]),
  retry_after_seconds: note("Seconds to wait before trying again.", 30),
};
