import type { Note } from "./notes.ts";
import { agentNotes } from "./agents.ts";
import { auditLogNotes } from "./audit-log.ts";
import { errorNotes } from "./errors.ts";
import { organizationKeyNotes } from "./organization-keys.ts";
import { passkeyNotes } from "./passkeys.ts";
import { paymentNotes } from "./payments.ts";
import { peopleNotes } from "./people.ts";
import { railNotes } from "./rails.ts";
import { recordNotes } from "./records.ts";
import { ruleNotes } from "./rules.ts";
import { sandboxNotes } from "./sandbox.ts";
import { webhookNotes } from "./webhooks.ts";

/**
 * Meanings of fields, by subject. The key is the field's name if it means the same everywhere, otherwise `Owner.name`.
 * The owner is a record, an operation or the surrounding field; for a path parameter, the preceding segment. No key is
 * in two parts.
 */
export const GLOSSARY_PARTS: readonly Readonly<Record<string, Note>>[] = [
  recordNotes,
  agentNotes,
  paymentNotes,
  railNotes,
  ruleNotes,
  peopleNotes,
  passkeyNotes,
  organizationKeyNotes,
  webhookNotes,
  auditLogNotes,
  errorNotes,
  sandboxNotes,
];

export const GLOSSARY: Readonly<Record<string, Note>> = Object.fromEntries(
  GLOSSARY_PARTS.flatMap((part) => Object.entries(part)),
);
