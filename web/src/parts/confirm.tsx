import { Button, Group, Stack, Text } from "@mantine/core";
import { type ReactElement, type ReactNode, useState } from "react";
import { Modal } from "./dialog.tsx";
import { Problem } from "./problem.tsx";

interface ConfirmProps {
  readonly title: string;
  readonly children: ReactNode;
  readonly action: string;
  readonly color?: string;
  readonly isBusy: boolean;
  readonly problem: string;
  readonly onConfirm: () => void;
  readonly onClose: () => void;
}

export function Confirm(props: ConfirmProps): ReactElement {
  const { action, children, color = "red", isBusy, onClose, onConfirm, problem, title } = props;
  return (
    <Modal opened onClose={onClose} title={title}>
      <Stack>
        <Text size="sm" component="div">
          {children}
        </Text>
        <Problem text={problem} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose} disabled={isBusy}>
            Cancel
          </Button>
          <Button color={color} loading={isBusy} onClick={onConfirm} data-autofocus>
            {action}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

/** Returns what a button has opened, and the functions that open and close it. */
export function useOpened<T>(): readonly [opened: T | null, open: (what: T) => void, close: () => void] {
  const [opened, setOpened] = useState<T | null>(null);
  return [opened, setOpened, () => setOpened(null)];
}
