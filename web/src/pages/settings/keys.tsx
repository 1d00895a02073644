import { Badge, Button, Group, Menu, ActionIcon, Text } from "@mantine/core";
import { type ReactElement, useCallback, useState } from "react";
import type { Item } from "../../../../src/client/types.ts";
import { useAction } from "../../action.ts";
import { api } from "../../api.ts";
import { useNames } from "../../containers.ts";
import { number } from "../../format.ts";
import { Icon } from "../../icons.tsx";
import { Confirm, useOpened } from "../../parts/confirm.tsx";
import { More, usePages } from "../../parts/list.tsx";
import { Card, Empty, State, Waiting, When, Written } from "../../parts/parts.tsx";
import { Failed } from "../../parts/problem.tsx";
import { Secret } from "../../parts/secret.tsx";
import { Table } from "../../parts/table.tsx";
import { CreateKey } from "./create-key.tsx";

type Key = Item<"listOrganizationKeys">;
type OpenDialog = { readonly how: "rotate" | "revoke"; readonly key: Key };

const STALE = [["organizationKeys"]];

const stateOf = ({ revokedAt, rotatedAt }: Key): string =>
  revokedAt === null ? (rotatedAt === null ? "active" : "rotated") : "revoked";

/** The organization's keys, for machines that provision and supervise agents and never spend. */
export function OrganizationKeys(): ReactElement {
  const pages = usePages(["organizationKeys"], (cursor, options) =>
    api.listOrganizationKeys({ query: { ...cursor, limit: 50 } }, options),
  );
  const [isCreating, setCreating] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  const [dialog, openDialog, close] = useOpened<OpenDialog>();
  const keys = pages.data?.pages.flatMap((page) => page.organizationKeys) ?? [];
  const cells = useCallback(
    (key: Key) => <Cells of={key} onOpenDialog={(how) => openDialog({ how, key })} />,
    [openDialog],
  );
  const create = (
    <Button leftSection={<Icon name="plus" />} onClick={() => setCreating(true)}>
      Create a key
    </Button>
  );
  return (
    <Card
      title="API keys"
      about="For orchestrators and backends that create and supervise agents. They can’t spend."
      actions={create}
      flush
    >
      {pages.isPending ? <Waiting /> : null}
      {pages.error === null ? null : <Failed error={pages.error} />}
      {pages.data !== undefined && keys.length === 0 ? (
        <Empty icon="key" title="No keys yet">
          A key has scopes, a container that it is bound to, and a limit of what it may create in a day. Its
          value is shown once.
        </Empty>
      ) : null}
      {keys.length === 0 ? null : (
        <Table
          items={keys}
          keyOf={({ id }) => id}
          columns={7}
          cells={cells}
          head={
            <>
              <th>Key</th>
              <th>State</th>
              <th>Scopes</th>
              <th>Bound to</th>
              <th>Created today</th>
              <th>Last used</th>
              <th />
            </>
          }
        />
      )}
      <More {...pages} />
      {isCreating ? (
        <CreateKey
          onClose={() => setCreating(false)}
          onCreated={(value) => {
            setCreating(false);
            setSecret(value);
          }}
        />
      ) : null}
      {dialog === null ? null : <ConfirmDialog dialog={dialog} onClose={close} onRotated={setSecret} />}
      {secret === null ? null : (
        <Secret title="The new key" label="Organization key" value={secret} onClose={() => setSecret(null)} />
      )}
    </Card>
  );
}

interface CellsProps {
  readonly of: Key;
  readonly onOpenDialog: (how: OpenDialog["how"]) => void;
}

function Cells({ of: key, onOpenDialog }: CellsProps): ReactElement {
  const names = useNames();
  const { binding } = key;
  const state = stateOf(key);
  const bound =
    binding.id === undefined
      ? ""
      : binding.type === "team"
        ? names.team(binding.id)
        : names.project(binding.id);
  return (
    <>
      <td className="main">
        <Text size="sm" fw={550} className="break">
          <Written text={key.name} />
        </Text>
        <Text size="xs" c="dimmed" className="mono">
          svc_org_live_…{key.last4}
        </Text>
      </td>
      <td>
        <State of={state} />
      </td>
      <td className="wide">
        <Group gap={4}>
          {key.scopes.map((scope) => (
            <Badge key={scope} color="gray" size="sm">
              {scope}
            </Badge>
          ))}
        </Group>
      </td>
      <td>
        {binding.type === "organization" ? "Organization" : <Written text={`${bound} (${binding.type})`} />}
      </td>
      <td className="figure away">
        {number(key.createdToday)} of {number(key.dailyCreateLimit)}
      </td>
      <td className="away">
        <When iso={key.lastUsedAt} />
      </td>
      <td className="right">
        {state === "active" ? (
          <Menu>
            <Menu.Target>
              <ActionIcon variant="subtle" color="gray" aria-label={`More about ${key.name}`}>
                <Icon name="more" />
              </ActionIcon>
            </Menu.Target>
            <Menu.Dropdown>
              <Menu.Item
                leftSection={<Icon name="refresh" size={16} />}
                onClick={() => onOpenDialog("rotate")}
              >
                Rotate
              </Menu.Item>
              <Menu.Item
                color="red"
                leftSection={<Icon name="trash" size={16} />}
                onClick={() => onOpenDialog("revoke")}
              >
                Revoke
              </Menu.Item>
            </Menu.Dropdown>
          </Menu>
        ) : null}
      </td>
    </>
  );
}

interface ConfirmDialogProps {
  readonly dialog: OpenDialog;
  readonly onClose: () => void;
  readonly onRotated: (value: string) => void;
}

function ConfirmDialog({ dialog, onClose, onRotated }: ConfirmDialogProps): ReactElement {
  const { how, key } = dialog;
  const rotate = useAction(() => api.rotateOrganizationKey({ id: key.id }), { stale: STALE });
  const revoke = useAction(() => api.revokeOrganizationKey({ id: key.id }), { stale: STALE });
  const run = async (): Promise<void> => {
    if (how === "revoke") {
      if ((await revoke.run()) !== null) onClose();
      return;
    }
    const done = await rotate.run();
    if (done === null) return;
    onClose();
    onRotated(done.key);
  };
  return (
    <Confirm
      title={`${how === "rotate" ? "Rotate" : "Revoke"} ${key.name}?`}
      action={how === "rotate" ? "Rotate" : "Revoke"}
      color={how === "rotate" ? "indigo" : "red"}
      isBusy={rotate.isBusy || revoke.isBusy}
      problem={`${rotate.problem}${revoke.problem}`}
      onConfirm={() => void run()}
      onClose={onClose}
    >
      {how === "rotate"
        ? "The old value stops working immediately; the new one has the same scopes, binding and limit."
        : "It is refused from its next request on."}
    </Confirm>
  );
}
