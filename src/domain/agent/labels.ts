/** Descriptive fields that people set. They decide nothing, so only the record holds them, unlike the name. */
export interface AgentLabels {
  readonly description: string | null;
  readonly appearance: { readonly color: string; readonly icon: string } | null;
}

const NO_LABELS: AgentLabels = { description: null, appearance: null };

export const LABELS: readonly string[] = Object.keys(NO_LABELS);

type SentLabels = { readonly [K in keyof AgentLabels]?: AgentLabels[K] | undefined };

/** Returns the labels given among these fields; null clears one. */
export function labelsIn(fields: SentLabels): Partial<AgentLabels>;
export function labelsIn(fields: object): object {
  return Object.fromEntries(
    Object.entries(fields).filter(([name, value]) => LABELS.includes(name) && value !== undefined),
  );
}

/** Returns all labels of an agent; a missing one is null. */
export const labelsOf = (fields: SentLabels): AgentLabels => ({ ...NO_LABELS, ...labelsIn(fields) });

/** Returns the labels among these fields that are not null. */
export function setLabelsIn(fields: SentLabels): Partial<AgentLabels>;
export function setLabelsIn(fields: SentLabels): object {
  return Object.fromEntries(Object.entries(labelsIn(fields)).filter(([, value]) => value !== null));
}
