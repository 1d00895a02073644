import { PinInput, Stack, Text } from "@mantine/core";
import { type ClipboardEvent, type ReactElement, useEffect, useId, useRef } from "react";

const DIGITS = 6;

interface CodeProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  /** Called with each complete code, which may not be in `value` yet. */
  readonly onComplete: (code: string) => void;
  readonly isBusy: boolean;
  /** Text below the boxes; empty if another part of the form shows it. */
  readonly error?: string | undefined;
  readonly autoFocus?: boolean;
}

/** Input for the six digits of an authenticator app, typed individually or pasted with spaces or hyphens. */
export function CodeInput(props: CodeProps): ReactElement {
  const { autoFocus = false, error, isBusy, label, onChange, onComplete, value } = props;
  const id = useId();
  const first = useRef<HTMLInputElement>(null);
  const wasBusy = useRef(false);
  useEffect(() => {
    // Disabled fields lose the focus, and after a wrong code the user types again at once.
    if (wasBusy.current && !isBusy) first.current?.focus();
    wasBusy.current = isBusy;
  }, [isBusy]);
  const paste = (event: ClipboardEvent): void => {
    const code = event.clipboardData.getData("text/plain").replaceAll(/[\s-]/g, "");
    event.preventDefault();
    event.stopPropagation();
    if (!new RegExp(`^[0-9]{${DIGITS}}$`).test(code)) return;
    onChange(code);
    onComplete(code);
  };
  return (
    <Stack gap="xs" onPasteCapture={paste}>
      <Text size="sm" fw={550} id={id}>
        {label}
      </Text>
      <PinInput
        length={DIGITS}
        type="number"
        placeholder=""
        oneTimeCode
        autoFocus={autoFocus}
        ref={first}
        value={value}
        onChange={onChange}
        onComplete={onComplete}
        disabled={isBusy}
        error={error !== undefined}
        aria-labelledby={id}
        getInputProps={(index) => ({
          "aria-label": `Digit ${index + 1}`,
          // A dialog focuses its close button on opening, unless a field claims the focus.
          ...(index === 0 ? { "data-autofocus": autoFocus || undefined } : {}),
        })}
      />
      {error === undefined || error === "" ? null : (
        <Text size="xs" c="red" role="alert">
          {error}
        </Text>
      )}
    </Stack>
  );
}
