import { ActionIcon, Alert, Button, Group, Stack, Text, Tooltip } from "@mantine/core";
import type { ReactElement, ReactNode } from "react";
import { Modal } from "./dialog.tsx";
import { copyLabel, useCopy } from "../clipboard.ts";
import { Icon } from "../icons.tsx";

/** Button that copies a text and confirms it. */
export function CopyButton({
  text,
  label = "Copy",
}: {
  readonly text: string;
  readonly label?: string;
}): ReactElement {
  const { copied, copy } = useCopy(text);
  return (
    <Button
      variant="default"
      size="compact-sm"
      leftSection={<Icon name={copied === true ? "check" : "copy"} size={15} />}
      onClick={({ currentTarget }) => void copy(currentTarget)}
    >
      {copyLabel(label, copied)}
    </Button>
  );
}

export function CopyIcon({ text, label }: { readonly text: string; readonly label: string }): ReactElement {
  const { copied, copy } = useCopy(text);
  return (
    <Tooltip label={copyLabel(label, copied)}>
      <ActionIcon
        variant="subtle"
        color="gray"
        size="sm"
        aria-label={label}
        onClick={({ currentTarget }) => void copy(currentTarget)}
      >
        <Icon name={copied === true ? "check" : "copy"} size={15} />
      </ActionIcon>
    </Tooltip>
  );
}

export function Block({ label, text }: { readonly text: string; readonly label: string }): ReactElement {
  return (
    <div className="block">
      <div className="block-head">
        <Text size="xs" fw={550} c="dimmed">
          {label}
        </Text>
        <CopyButton text={text} />
      </div>
      <pre tabIndex={0} aria-label={label}>
        {text}
      </pre>
    </div>
  );
}

interface SecretProps {
  readonly title: string;
  readonly value: string;
  readonly label: string;
  readonly children?: ReactNode;
  readonly onClose: () => void;
}

/** Secret that is shown once. A click outside or Escape does not close the dialog. */
export function Secret({ children, label, onClose, title, value }: SecretProps): ReactElement {
  return (
    <Modal opened onClose={onClose} title={title} size="lg" closeOnClickOutside={false} closeOnEscape={false}>
      <Stack>
        <Alert color="yellow" variant="light" icon={<Icon name="key" />}>
          Copy it now and keep it in a secret manager. It is shown this once; nobody can read it again.
        </Alert>
        <Block label={label} text={value} />
        {children}
        <Group justify="flex-end">
          <Button onClick={onClose}>I have saved it</Button>
        </Group>
      </Stack>
    </Modal>
  );
}
