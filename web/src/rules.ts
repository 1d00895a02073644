import type { Input, Output } from "../../src/client/types.ts";

export type Rule = Output<"getTeamApprovalRules">["rules"][number];
export type SentRules = Input<"setTeamApprovalRules">["body"]["rules"];
export type RuleKind = Rule["type"];
export type ParamsOf<T extends RuleKind> = Extract<Rule, { readonly type: T }>["params"];

/** Rule being edited, of one of these types. A new one has no id yet. */
export type DraftOf<T extends RuleKind> = {
  readonly [K in T]: {
    readonly id: string | null;
    readonly key: string;
    readonly type: K;
    readonly enabled: boolean;
    readonly shadow?: boolean | undefined;
    readonly params: ParamsOf<K>;
  };
}[T];
export type Draft = DraftOf<RuleKind>;

/** Whether a draft can be sent: NaN marks a number field without a valid number. */
export const isComplete = ({ params }: Draft): boolean =>
  Object.values(params).every((value) => !Number.isNaN(value));

export const draftsOf = (rules: readonly Rule[]): readonly Draft[] =>
  rules.map((rule) => ({ ...rule, key: rule.id }));

/** Returns the rules in the API's form: existing ones with their ids, new ones without. */
export const sentOf = (drafts: readonly Draft[]): SentRules =>
  drafts.map(({ id, key: _key, ...rule }) => (id === null ? rule : { ...rule, id }));
