import { Textarea } from "@mantine/core";
import type { ReactElement } from "react";
import type { Agent } from "../words.ts";
import { Written } from "./parts.tsx";

/** Labels of an agent as typed. An empty one counts as none. */
export interface TypedLabels {
  readonly description: string;
}

export const NO_LABELS: TypedLabels = { description: "" };

export const typedLabelsOf = ({ description }: Agent): TypedLabels => ({ description: description ?? "" });

const textOrNull = (typed: string): string | null => (typed.trim() === "" ? null : typed);

/** Returns the labels in the API's form. */
export const sentLabelsOf = ({ description }: TypedLabels) => ({ description: textOrNull(description) });

/** Fields that show their own problems. */
export const LABEL_FIELDS = Object.keys(NO_LABELS);

interface FieldsProps {
  readonly value: TypedLabels;
  readonly onChange: (value: TypedLabels) => void;
  readonly at: (path: string) => string | undefined;
}

export function LabelFields({ at, onChange, value }: FieldsProps): ReactElement {
  const set = (change: Partial<TypedLabels>): void => onChange({ ...value, ...change });
  return (
    <Textarea
      label="Description"
      placeholder="What it is for"
      autosize={false}
      rows={2}
      value={value.description}
      onChange={({ currentTarget }) => set({ description: currentTarget.value })}
      error={at("description")}
    />
  );
}

export function ShownLabels({ agent }: { readonly agent: Agent }): ReactElement | null {
  return agent.description === null ? null : <Written text={agent.description} />;
}
