import { Alert, Button, Group, Radio, Stack, Text, TextInput } from "@mantine/core";
import { type ReactElement, type SyntheticEvent, useCallback, useState } from "react";
import { Modal } from "../../parts/dialog.tsx";
import { newUuid } from "../../../../src/client/uuid.ts";
import type { Item, Output } from "../../../../src/client/types.ts";
import { useAction } from "../../action.ts";
import { api } from "../../api.ts";
import { titled } from "../../format.ts";
import { Icon } from "../../icons.tsx";
import { More, usePages } from "../../parts/list.tsx";
import { Card, When } from "../../parts/parts.tsx";
import { Problem } from "../../parts/problem.tsx";
import { Block } from "../../parts/secret.tsx";
import { Table } from "../../parts/table.tsx";
import { useMay } from "../../session.tsx";
import { type Binding, BindingPicker, WHOLE } from "../../parts/binding-picker.tsx";
import { ROLES } from "../../words.ts";

const STALE = [["invites"]];
type Role = (typeof ROLES)[number]["value"];

const DELIVERIES: Readonly<Record<string, string>> = {
  link: "By its link",
  mailing: "On its way by mail",
  mailed: "Mailed",
  refused: "Its address is refused: withdraw it, and invite another one",
};

/** Invites that can still be accepted. */
export function Invites(): ReactElement | null {
  const pages = usePages(["invites"], (cursor, options) =>
    api.listInvites({ query: { ...cursor, limit: 50 } }, options),
  );
  const isAdmin = useMay("admin");
  const revoke = useAction((id: string) => api.revokeInvite({ id }), { stale: STALE });
  const cells = useCallback(
    (invite: Item<"listInvites">) => (
      <>
        <td className="main break">{invite.email}</td>
        <td>{titled(invite.role)}</td>
        <td className="wide">{DELIVERIES[invite.delivery] ?? invite.delivery}</td>
        <td className="away">
          <When iso={invite.expiresAt} />
        </td>
        <td className="right">
          {isAdmin ? (
            <Button
              variant="subtle"
              color="red"
              size="compact-sm"
              onClick={() => void revoke.run(invite.id)}
              disabled={revoke.isBusy}
            >
              Withdraw
            </Button>
          ) : null}
        </td>
      </>
    ),
    [isAdmin, revoke.isBusy],
  );
  const invites = pages.data?.pages.flatMap((page) => page.invites) ?? [];
  if (invites.length === 0) return null;
  return (
    <Card title="Open invites" flush>
      <Problem text={revoke.problem} />
      <Table
        items={invites}
        keyOf={({ id }) => id}
        columns={5}
        cells={cells}
        head={
          <>
            <th>E-mail</th>
            <th>Role</th>
            <th>Sent</th>
            <th>Expires</th>
            <th />
          </>
        }
      />
      <More {...pages} />
    </Card>
  );
}

/** Form that invites a person. If the service sends no mail, it shows the link to hand on. */
export function Invite({ onClose }: { readonly onClose: () => void }): ReactElement {
  const isOwner = useMay("owner");
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<Role>("member");
  const [binding, setBinding] = useState<Binding>(WHOLE);
  const [idempotencyKey] = useState(() => newUuid());
  const [sent, setSent] = useState<Output<"createInvite"> | null>(null);
  const invite = useAction(
    () => {
      const chosen = { email, role, ...(role === "member" ? { binding } : {}) };
      const key = `${idempotencyKey}-${JSON.stringify(chosen)}`;
      return api.createInvite({ body: { ...chosen, idempotencyKey: key } });
    },
    { stale: STALE, fields: ["email", "binding"] },
  );
  const submit = async (event: SyntheticEvent): Promise<void> => {
    event.preventDefault();
    setSent(await invite.run());
  };
  if (sent !== null) {
    return (
      <Modal opened onClose={onClose} title="Invited" size="lg" closeOnClickOutside={sent.token === null}>
        <Stack>
          {sent.token === null ? (
            <Text size="sm">
              The link is on its way to {sent.invite.email} by mail. It is valid for 7 days.
            </Text>
          ) : (
            <>
              <Alert color="yellow" variant="light" icon={<Icon name="key" />}>
                Hand this link on to {sent.invite.email}. It is shown this once, works once, and is valid for
                7 days.
              </Alert>
              <Block label="Link" text={`${location.origin}/invite#token=${sent.token}`} />
            </>
          )}
          <Group justify="flex-end">
            <Button onClick={onClose}>Done</Button>
          </Group>
        </Stack>
      </Modal>
    );
  }
  return (
    <Modal opened onClose={onClose} title="Invite a member">
      <form onSubmit={(event) => void submit(event)} noValidate>
        <Stack>
          <Problem text={invite.problem} />
          <TextInput
            label="E-mail"
            type="email"
            data-autofocus
            value={email}
            error={invite.at("email")}
            onChange={({ currentTarget }) => setEmail(currentTarget.value)}
          />
          <Radio.Group
            label="Role"
            value={role}
            onChange={(value) => setRole(ROLES.find((each) => each.value === value)?.value ?? "member")}
          >
            <Stack gap="xs" mt={4}>
              {ROLES.filter(({ value }) => isOwner || value !== "owner").map(
                ({ description, label, value }) => (
                  <Radio key={value} value={value} label={label} description={description} />
                ),
              )}
            </Stack>
          </Radio.Group>
          {role === "member" ? (
            <BindingPicker value={binding} onChange={setBinding} error={invite.at("binding")} />
          ) : null}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={invite.isBusy}>
              Invite
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
