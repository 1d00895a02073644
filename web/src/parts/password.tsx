import { PasswordInput as Plain, type PasswordInputProps } from "@mantine/core";
import type { ReactElement } from "react";

/** Password field. Sets `aria-invalid`, which Mantine's own field does not do. */
export const PasswordInput = (props: PasswordInputProps): ReactElement => (
  <Plain {...props} aria-invalid={Boolean(props.error)} />
);
