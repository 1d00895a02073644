import { NumberInput, TextInput } from "@mantine/core";
import type { ReactElement, ReactNode } from "react";

interface AmountProps {
  readonly label: string;
  /** Accessible name if no label is visible. */
  readonly ariaLabel?: string;
  readonly description?: ReactNode;
  /** Text as typed; empty for none. */
  readonly value: string;
  readonly onChange: (typed: string) => void;
  readonly placeholder?: string;
  readonly error?: string | undefined;
  readonly disabled?: boolean;
}

/** Input for an amount in dollars. */
export function AmountInput({
  ariaLabel,
  description,
  error,
  label,
  onChange,
  placeholder,
  ...field
}: AmountProps): ReactElement {
  return (
    <TextInput
      {...field}
      {...(ariaLabel === undefined ? { label } : { "aria-label": ariaLabel })}
      leftSection="$"
      inputMode="decimal"
      autoComplete="off"
      description={description}
      placeholder={placeholder ?? ""}
      error={error}
      onChange={({ currentTarget }) => onChange(currentTarget.value)}
    />
  );
}

export function CountInput({
  description,
  error,
  onChange,
  placeholder,
  value,
  ariaLabel: _ariaLabel,
  ...field
}: AmountProps): ReactElement {
  return (
    <NumberInput
      {...field}
      value={value}
      min={0}
      allowDecimal={false}
      hideControls
      description={description}
      placeholder={placeholder ?? ""}
      error={error}
      onChange={(typed) => onChange(String(typed))}
    />
  );
}
