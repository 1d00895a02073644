import { z } from "zod";
import type { AgentLabels } from "../domain/agent/labels.ts";
import { color, description, icon } from "./primitives.ts";

/** An agent's labels. The types require that a label that can be set is also returned, and vice versa. */

const APPEARANCE = { description: "How it is shown; null: by default." };

/** Labels in a change: an omitted one stays, null clears it. */
export const sentLabels = {
  description: description.nullable().optional(),
  appearance: z.strictObject({ color, icon }).nullable().optional().meta(APPEARANCE),
} satisfies { readonly [K in keyof AgentLabels]: z.ZodType<AgentLabels[K] | undefined> };

const { appearance: _onlyByChange, ...labelsOfCreate } = sentLabels;

export const createdLabels = labelsOfCreate;

export const shownLabels = {
  description: z.string().nullable(),
  appearance: z.strictObject({ color: z.string(), icon: z.string() }).nullable().meta(APPEARANCE),
} satisfies { readonly [K in keyof AgentLabels]: z.ZodType<AgentLabels[K]> };
