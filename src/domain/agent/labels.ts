/**
 * What people write about an agent to know it by. It decides nothing, so the agent's record alone has it; the name, which
 * payments carry, is decided by the agent's actor.
 */
export interface AgentLabels {
  readonly description: string | null;
  readonly appearance: { readonly color: string; readonly icon: string } | null;
}

/** An agent without any. */
const NO_LABELS: AgentLabels = { description: null, appearance: null };

/** The labels by their names. */
export const LABELS: readonly string[] = Object.keys(NO_LABELS);

type SentLabels = { readonly [K in keyof AgentLabels]?: AgentLabels[K] | undefined };

/** The labels among these fields that are given; null clears one. */
export function labelsIn(fields: SentLabels): Partial<AgentLabels>;
export function labelsIn(fields: object): object {
  return Object.fromEntries(
    Object.entries(fields).filter(([name, value]) => LABELS.includes(name) && value !== undefined),
  );
}

/** All labels of an agent with these fields; one that is not given is null, as of records from before there was such a label. */
export const labelsOf = (fields: SentLabels): AgentLabels => ({ ...NO_LABELS, ...labelsIn(fields) });

/** The labels among these fields that are not null. */
export function setLabelsIn(fields: SentLabels): Partial<AgentLabels>;
export function setLabelsIn(fields: SentLabels): object {
  return Object.fromEntries(Object.entries(labelsIn(fields)).filter(([, value]) => value !== null));
}
