import type { ContainerDocument } from "../../src/store/documents.ts";
import { ok } from "../../src/domain/result.ts";
import type { AuditedWrites } from "../../src/audit/notes.ts";
import { ApprovalRules, rulesOf, type SentRule } from "../../src/containers/approval-rules.ts";
import type { ContainerKind } from "../../src/containers/containers.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

type ApprovalRulesHandlers = Pick<
  Handlers,
  "getProjectApprovalRules" | "setProjectApprovalRules" | "getTeamApprovalRules" | "setTeamApprovalRules"
>;

interface Replacement {
  readonly body: { readonly rules: readonly SentRule[]; readonly version: number };
}

interface ReplaceContext {
  readonly target: ContainerDocument;
  readonly audit: AuditedWrites;
}

const read = (_input: unknown, { target }: { readonly target: ContainerDocument }) =>
  Promise.resolve(ok({ body: rulesOf(target) }));

export function approvalRulesHandlers(dependencies: HandlerDependencies): ApprovalRulesHandlers {
  const approvalRules = new ApprovalRules(dependencies);

  const replaceOf =
    (kind: ContainerKind) =>
    async ({ body }: Replacement, { audit, target }: ReplaceContext) => {
      const replaced = await approvalRules.replace(kind, target, body, audit);
      return replaced.ok ? ok({ body: replaced.value }) : replaced;
    };

  return {
    getProjectApprovalRules: read,
    setProjectApprovalRules: replaceOf("project"),
    getTeamApprovalRules: read,
    setTeamApprovalRules: replaceOf("team"),
  };
}
