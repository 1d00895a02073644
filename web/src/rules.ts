import type { Input, Output } from "../../src/client/types.ts";

export type Rule = Output<"getTeamApprovalRules">["rules"][number];
export type SentRules = Input<"setTeamApprovalRules">["body"]["rules"];
export type RuleKind = Rule["type"];
export type ParamsOf<T extends RuleKind> = Extract<Rule, { readonly type: T }>["params"];

/** A rule on the page, of one of these types: one that is new has no id yet. */
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

/** Whether it can be sent: not while what was typed for a number is none. */
export const isComplete = ({ params }: Draft): boolean =>
  Object.values(params).every((value) => !Number.isNaN(value));

export const draftsOf = (rules: readonly Rule[]): readonly Draft[] =>
  rules.map((rule) => ({ ...rule, key: rule.id }));

/** Returns the rules as the service takes them: existing ones with their ids, new ones without. */
export const sentOf = (drafts: readonly Draft[]): SentRules =>
  drafts.map(({ id, key: _key, ...rule }) => (id === null ? rule : { ...rule, id }));
