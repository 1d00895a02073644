import {
  Drawer as MantineDrawer,
  type DrawerProps,
  Modal as MantineModal,
  type ModalProps,
} from "@mantine/core";
import { type ReactElement, useEffect, useState } from "react";

/** Mantine's dialogs, which also return the focus if they are mounted open and closed by unmounting. */

export function Modal(props: ModalProps): ReactElement {
  useFocusReturn(props.opened);
  return <MantineModal {...props} />;
}

export function Drawer(props: DrawerProps): ReactElement {
  useFocusReturn(props.opened);
  return <MantineDrawer {...props} />;
}

function useFocusReturn(isOpen: boolean): void {
  // Read during rendering, because a field of the dialog may take the focus before any effect runs.
  const [before] = useState(() => (isOpen ? document.activeElement : null));
  useEffect(
    () => () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
    },
    [before],
  );
}
