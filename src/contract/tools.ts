import type { ManagementTool } from "./tool-names.ts";
import type { ToolBinding } from "./types.ts";

/** Presentation of an operation as a tool of the management toolset. */

type Hints = ToolBinding["hints"];

export const readOnly: Hints = { readOnly: true, destructive: false, idempotent: true, openWorld: false };

/** Overwrites or ends something irrecoverably; a repetition changes nothing more. */
export const changes: Hints = { readOnly: false, destructive: true, idempotent: true, openWorld: false };

/** Changes a state without losing anything; reversible at any time. */
export const switches: Hints = { readOnly: false, destructive: false, idempotent: true, openWorld: false };

/** Creates something once per idempotency key, which a tool's caller must send. */
export const creates = {
  hints: { readOnly: false, destructive: false, idempotent: true, openWorld: false },
  requires: ["idempotencyKey"],
} as const;

export const managementTool = (
  name: ManagementTool,
  title: string,
  more: Partial<Pick<ToolBinding, "idName" | "hints" | "requires">> = {},
): ToolBinding => ({ name, title, idName: null, hints: readOnly, ...more });
