import { CREATED, note, type Note } from "./notes.ts";

export const sandboxNotes: Readonly<Record<string, Note>> = {
  "entries.id": note("Its id.", "cap_1"),
  payment: note("The payment that failed."),
  reason: note("The reason.", "card_declined"),
  failedAt: note("When it failed.", CREATED),
};
