import { ActionIcon, Avatar, Button, Checkbox, Group, Menu, Stack, Text } from "@mantine/core";
import { type ReactElement, useCallback, useState } from "react";
import { useAction } from "../../action.ts";
import { api } from "../../api.ts";
import { titled } from "../../format.ts";
import { Icon } from "../../icons.tsx";
import { Confirm, useOpened } from "../../parts/confirm.tsx";
import { More, usePages } from "../../parts/list.tsx";
import { Card, Waiting, When, Written } from "../../parts/parts.tsx";
import { Failed } from "../../parts/problem.tsx";
import { Table } from "../../parts/table.tsx";
import { useMay, useMe } from "../../session.tsx";
import { BindingPicker, bindingOf, boundWords } from "../../parts/binding-picker.tsx";
import { type Member, withArticle } from "../../words.ts";
import { Invite, Invites } from "./invites.tsx";

type Role = Member["role"];
type OpenDialog = { readonly member: Member; readonly role: Role | null };

export function Members(): ReactElement {
  const pages = usePages(["members"], (cursor, options) =>
    api.listMembers({ query: { ...cursor, limit: 100 } }, options),
  );
  const isAdmin = useMay("admin");
  const [isInviting, setInviting] = useState(false);
  const [dialog, openDialog, close] = useOpened<OpenDialog>();
  const cells = useCallback(
    (member: Member) => <Cells member={member} onOpenDialog={(role) => openDialog({ member, role })} />,
    [openDialog],
  );
  const invite = isAdmin ? (
    <Button leftSection={<Icon name="plus" />} onClick={() => setInviting(true)}>
      Invite a member
    </Button>
  ) : undefined;
  const members = pages.data?.pages.flatMap((page) => page.members) ?? [];
  return (
    <Stack>
      <Card title="Members" actions={invite} flush>
        {pages.isPending ? <Waiting lines={3} /> : null}
        {pages.error === null ? null : <Failed error={pages.error} />}
        {members.length === 0 ? null : (
          <Table
            items={members}
            keyOf={({ id }) => id}
            columns={5}
            cells={cells}
            head={
              <>
                <th>Person</th>
                <th>Role</th>
                <th>Second factor</th>
                <th>Since</th>
                <th />
              </>
            }
          />
        )}
        <More {...pages} />
      </Card>
      <Invites />
      {isInviting ? <Invite onClose={() => setInviting(false)} /> : null}
      {dialog === null ? null : <Change dialog={dialog} onClose={close} />}
    </Stack>
  );
}

const FACTORS: Readonly<Record<string, string>> = {
  totp: "Authenticator app",
  passkey: "Passkey",
};

interface CellsProps {
  readonly member: Member;
  readonly onOpenDialog: (role: Role | null) => void;
}

function Cells({ member, onOpenDialog }: CellsProps): ReactElement {
  const { user } = useMe();
  const isOwner = useMay("owner");
  const isAdmin = useMay("admin");
  const others = (["auditor", "member", "admin", "owner"] as const).filter(
    (role) => role !== member.role && (isOwner || role !== "owner"),
  );
  const bound = boundWords(bindingOf(member));
  const mayChange = isAdmin && (isOwner || member.role !== "owner");
  return (
    <>
      <td className="main">
        <Group gap="sm" wrap="nowrap">
          <Avatar size={32} radius="xl" color="indigo" name={member.name} />
          <div>
            <Text size="sm" fw={550} className="break">
              <Written text={member.name} />
              {member.id === user.id ? <span className="muted"> (you)</span> : null}
            </Text>
            <Text size="xs" c="dimmed" className="break">
              {member.email}
            </Text>
          </div>
        </Group>
      </td>
      <td>
        {titled(member.role)}
        {bound === "" ? null : <span className="muted"> in {bound}</span>}
      </td>
      <td>
        {member.secondFactors.length === 0 ? (
          <span className="muted">None</span>
        ) : (
          member.secondFactors.map((kind) => FACTORS[kind] ?? kind).join(", ")
        )}
      </td>
      <td className="away">
        <When iso={member.createdAt} />
      </td>
      <td className="right">
        {mayChange ? (
          <Menu>
            <Menu.Target>
              <ActionIcon variant="subtle" color="gray" aria-label={`More about ${member.name}`}>
                <Icon name="more" />
              </ActionIcon>
            </Menu.Target>
            <Menu.Dropdown>
              {others.map((role) => (
                <Menu.Item key={role} onClick={() => onOpenDialog(role)}>
                  Make {withArticle(role)}
                </Menu.Item>
              ))}
              {member.role === "member" ? (
                <Menu.Item onClick={() => onOpenDialog("member")}>Change where they decide</Menu.Item>
              ) : null}
              <Menu.Divider />
              <Menu.Item color="red" onClick={() => onOpenDialog(null)}>
                Remove
              </Menu.Item>
            </Menu.Dropdown>
          </Menu>
        ) : null}
      </td>
    </>
  );
}

const STALE = [["members"], ["organizationKeys"]];

/** Dialog that changes a role or removes a person. It also asks about the keys that the person has created. */
function Change({
  dialog,
  onClose,
}: {
  readonly dialog: OpenDialog;
  readonly onClose: () => void;
}): ReactElement {
  const { member, role } = dialog;
  const [keepsKeys, setKeepsKeys] = useState(false);
  const query = keepsKeys ? ({ keepKeys: "true" } as const) : {};
  const [binding, setBinding] = useState(bindingOf(member));
  const change = useAction(
    (to: Role) =>
      api.updateMember({ id: member.id, query, body: { role: to, ...(to === "member" ? { binding } : {}) } }),
    { stale: STALE, fields: ["binding"] },
  );
  const remove = useAction(() => api.removeMember({ id: member.id, query }), { stale: STALE });
  const losesKeys = member.role !== role && (role === null || role === "member" || role === "auditor");
  const run = async (): Promise<void> => {
    if (role !== null) {
      if ((await change.run(role)) !== null) onClose();
      return;
    }
    if ((await remove.run()) !== null) onClose();
  };
  return (
    <Confirm
      title={
        role === null
          ? `Remove ${member.name}?`
          : role === member.role
            ? `Where does ${member.name} decide?`
            : `Make ${member.name} ${withArticle(role)}?`
      }
      action={role === null ? "Remove" : role === member.role ? "Save" : "Change the role"}
      color={role === null ? "red" : "indigo"}
      isBusy={change.isBusy || remove.isBusy}
      problem={`${change.problem}${remove.problem}`}
      onConfirm={() => void run()}
      onClose={onClose}
    >
      <Stack gap="sm">
        {role === null
          ? "Their sessions and factors end immediately."
          : "This applies to open sessions immediately."}
        {role === "member" ? (
          <BindingPicker value={binding} onChange={setBinding} error={change.at("binding")} />
        ) : null}
        {losesKeys ? (
          <Checkbox
            label="Leave the organization keys that they created in force"
            description="Otherwise they are revoked immediately."
            checked={keepsKeys}
            onChange={({ currentTarget }) => setKeepsKeys(currentTarget.checked)}
          />
        ) : null}
      </Stack>
    </Confirm>
  );
}
