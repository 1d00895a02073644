import { PasswordInput as Plain, type PasswordInputProps } from "@mantine/core";
import type { ReactElement } from "react";

/** A password. Mantine's own field does not say by itself that what was typed is wrong to a user of a screen reader. */
export const PasswordInput = (props: PasswordInputProps): ReactElement => (
  <Plain {...props} aria-invalid={Boolean(props.error)} />
);
