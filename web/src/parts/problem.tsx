import { Alert, Button, Group, Text } from "@mantine/core";
import type { ReactElement } from "react";
import { refusedIn, sentenceOf } from "../api.ts";
import { Icon } from "../icons.tsx";

interface ProblemProps {
  readonly text: string;
  readonly title?: string;
  readonly id?: string;
}

/** Problem with a person's action; renders nothing if there is none. */
export function Problem({ id, text, title }: ProblemProps): ReactElement | null {
  if (text === "") return null;
  return (
    <Alert
      role="alert"
      color="red"
      variant="light"
      icon={<Icon name="alert" />}
      className="problem"
      {...(title === undefined ? {} : { title })}
      {...(id === undefined ? {} : { id, tabIndex: -1 })}
    >
      {text}
    </Alert>
  );
}

/** Placeholder for contents that could not be read. */
export function Failed({
  error,
  retry,
}: {
  readonly error: unknown;
  readonly retry?: () => void;
}): ReactElement {
  const refused = refusedIn(error);
  const text =
    refused === null
      ? "Something went wrong on this page."
      : refused.code === "NOT_FOUND"
        ? "There is nothing under this address, or it is another organization’s."
        : sentenceOf(refused);
  return (
    <Alert role="alert" color="red" variant="light" icon={<Icon name="alert" />}>
      <Group justify="space-between">
        <Text size="sm" id="trouble-text">
          {text}
        </Text>
        {retry === undefined ? null : (
          <Button size="compact-sm" variant="default" onClick={retry}>
            Try again
          </Button>
        )}
      </Group>
    </Alert>
  );
}
