import { z } from "zod";
import { PLANS } from "../store/identity-documents.ts";

const MAX_PER_MINUTE = 1_000_000;
const limit = z.int().min(1).max(MAX_PER_MINUTE).optional();

export const planFields = { plan: z.enum(PLANS), restPerMinute: limit, mcpPerMinute: limit };

interface PlanInput {
  readonly plan: string;
  readonly restPerMinute?: number | undefined;
  readonly mcpPerMinute?: number | undefined;
}

export function checkCustomLimits(input: PlanInput, check: z.RefinementCtx): void {
  if (input.plan === "enterprise") return;
  const message = "Custom limits belong to the enterprise plan.";
  for (const name of ["restPerMinute", "mcpPerMinute"] as const) {
    if (input[name] !== undefined) check.addIssue({ code: "custom", path: [name], message });
  }
}
