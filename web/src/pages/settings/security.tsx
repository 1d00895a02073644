import { Alert, Badge, Button, Group, Stack, Switch, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactElement, type SyntheticEvent, useState } from "react";
import { Modal } from "../../parts/dialog.tsx";
import { valueOf } from "../../../../src/client/client.ts";
import type { Item } from "../../../../src/client/types.ts";
import { useAction } from "../../action.ts";
import { api } from "../../api.ts";
import { Icon } from "../../icons.tsx";
import { Confirm, useOpened } from "../../parts/confirm.tsx";
import { AddPasskey, AddTotp } from "../../parts/factors.tsx";
import { Card, Waiting, When, Written } from "../../parts/parts.tsx";
import { PasswordInput } from "../../parts/password.tsx";
import { Failed, Problem } from "../../parts/problem.tsx";
import { hasPasskeys, NO_PASSKEYS } from "../../passkeys.ts";
import { ME, useMe } from "../../session.tsx";

export function Security(): ReactElement {
  return (
    <Stack>
      <Factors />
      <Passkeys />
      <Password />
      <Notifications />
      <Sessions />
    </Stack>
  );
}

function Factors(): ReactElement {
  const { secondFactorEnrolment, user } = useMe();
  const [isOpen, setOpen] = useState(false);
  const hasTotp = user.secondFactors.includes("totp");
  return (
    <Card title="Authenticator app" about="Six digits that change every 30 seconds.">
      <Stack>
        {secondFactorEnrolment === null ? null : (
          <Alert color="yellow" variant="light" icon={<Icon name="shield" />}>
            You have no second factor yet. Budgets, keys and members can’t be changed without one. The first
            one is enrolled within 5 minutes of signing in; after that, sign in again.
          </Alert>
        )}
        <Group justify="space-between">
          <Badge color={hasTotp ? "teal" : "gray"}>{hasTotp ? "Enabled" : "Not enrolled"}</Badge>
          <Button variant="default" onClick={() => setOpen(true)}>
            {hasTotp ? "Replace" : "Enrol"}
          </Button>
        </Group>
      </Stack>
      <Modal opened={isOpen} onClose={() => setOpen(false)} title="Authenticator app">
        {isOpen ? <AddTotp onDone={() => setOpen(false)} onCancel={() => setOpen(false)} /> : null}
      </Modal>
    </Card>
  );
}

type Passkey = Item<"listPasskeys">;
const PASSKEYS = [["passkeys"], ME];

function Passkeys(): ReactElement {
  const { data, error, isPending } = useQuery({
    queryKey: ["passkeys"],
    queryFn: async ({ signal }) => valueOf(await api.listPasskeys({}, { signal })).passkeys,
  });
  const [isAdding, setAdding] = useState(false);
  const [removing, remove, close] = useOpened<Passkey>();
  const [renaming, rename, closeRename] = useOpened<Passkey>();
  return (
    <Card
      title="Passkeys"
      about="Sign in with your fingerprint, face or device PIN instead of a password."
      actions={
        hasPasskeys() ? (
          <Button variant="default" leftSection={<Icon name="plus" />} onClick={() => setAdding(true)}>
            Add a passkey
          </Button>
        ) : undefined
      }
      flush
    >
      {hasPasskeys() ? null : (
        <Text size="sm" className="pad">
          {NO_PASSKEYS} Use an authenticator app here.
        </Text>
      )}
      {isPending ? <Waiting lines={2} /> : null}
      {error === null ? null : <Failed error={error} />}
      {data?.length === 0 ? (
        <Text size="sm" c="dimmed" className="pad">
          You have none yet.
        </Text>
      ) : null}
      {data === undefined || data.length === 0 ? null : (
        <table className="rows stacked">
          <thead>
            <tr>
              <th>Passkey</th>
              <th>Synced</th>
              <th>Last used</th>
              <th />
            </tr>
          </thead>
          <tbody>
            {data.map((passkey) => (
              <tr key={passkey.id}>
                <td className="main">
                  <Text size="sm" fw={550}>
                    <Written text={passkey.name} />
                  </Text>
                  {passkey.suspectedCloneAt === null ? null : (
                    <Badge color="red">May have been copied: enrol another, remove this</Badge>
                  )}
                </td>
                <td className="away">{passkey.backedUp ? "Yes" : "No"}</td>
                <td>
                  <When iso={passkey.lastUsedAt} />
                </td>
                <td className="right">
                  <Group gap={4} justify="flex-end" wrap="nowrap">
                    <Button variant="subtle" size="compact-sm" onClick={() => rename(passkey)}>
                      Rename
                    </Button>
                    <Button variant="subtle" color="red" size="compact-sm" onClick={() => remove(passkey)}>
                      Remove
                    </Button>
                  </Group>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <Modal opened={isAdding} onClose={() => setAdding(false)} title="Add a passkey">
        {isAdding ? <AddPasskey onDone={() => setAdding(false)} onCancel={() => setAdding(false)} /> : null}
      </Modal>
      {removing === null ? null : <Remove passkey={removing} onClose={close} />}
      {renaming === null ? null : <Rename passkey={renaming} onClose={closeRename} />}
    </Card>
  );
}

interface PasskeyProps {
  readonly passkey: Passkey;
  readonly onClose: () => void;
}

function Remove({ onClose, passkey }: PasskeyProps): ReactElement {
  const remove = useAction(() => api.removePasskey({ id: passkey.id }), { stale: PASSKEYS });
  return (
    <Confirm
      title={`Remove ${passkey.name}?`}
      action="Remove"
      isBusy={remove.isBusy}
      problem={remove.problem}
      onConfirm={() => void remove.run().then((done) => done !== null && onClose())}
      onClose={onClose}
    >
      It can no longer be used to sign in. Delete it on the device as well.
    </Confirm>
  );
}

function Rename({ onClose, passkey }: PasskeyProps): ReactElement {
  const [name, setName] = useState(passkey.name);
  const rename = useAction(() => api.updatePasskey({ id: passkey.id, body: { name } }), {
    stale: PASSKEYS,
    fields: ["name"],
  });
  const submit = async (event: SyntheticEvent): Promise<void> => {
    event.preventDefault();
    if ((await rename.run()) !== null) onClose();
  };
  return (
    <Modal opened onClose={onClose} title="Rename the passkey">
      <form onSubmit={(event) => void submit(event)} noValidate>
        <Stack>
          <Problem text={rename.problem} />
          <TextInput
            label="Name"
            data-autofocus
            value={name}
            error={rename.at("name")}
            onChange={({ currentTarget }) => setName(currentTarget.value)}
          />
          <Group justify="flex-end">
            <Button type="submit" loading={rename.isBusy}>
              Save
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

function Password(): ReactElement {
  const [currentPassword, setCurrent] = useState("");
  const [newPassword, setNew] = useState("");
  const [isDone, setDone] = useState(false);
  const change = useAction(() => api.changePassword({ body: { currentPassword, newPassword } }), {
    stale: [["sessions"]],
    fields: ["currentPassword", "newPassword"],
  });
  const submit = async (event: SyntheticEvent): Promise<void> => {
    event.preventDefault();
    setDone(false);
    if ((await change.run()) === null) return;
    setCurrent("");
    setNew("");
    setDone(true);
  };
  return (
    <Card title="Password" about="Changing it ends your other sessions.">
      <form onSubmit={(event) => void submit(event)} noValidate>
        <Stack maw={420}>
          <Problem text={change.problem} />
          {isDone ? (
            <Alert color="teal" variant="light" role="status" icon={<Icon name="check" />}>
              Your password has changed.
            </Alert>
          ) : null}
          <PasswordInput
            label="Current password"
            autoComplete="current-password"
            value={currentPassword}
            error={change.at("currentPassword")}
            onChange={({ currentTarget }) => setCurrent(currentTarget.value)}
          />
          <PasswordInput
            label="New password"
            description="At least 12 characters and hard to guess."
            autoComplete="new-password"
            value={newPassword}
            error={change.at("newPassword")}
            onChange={({ currentTarget }) => setNew(currentTarget.value)}
          />
          <Button type="submit" loading={change.isBusy} className="start">
            Change the password
          </Button>
        </Stack>
      </form>
    </Card>
  );
}

const NOTIFICATIONS = ["notifications"];

/** Mail settings, shown once the service is known to send mail. */
function Notifications(): ReactElement | null {
  const { data, error } = useQuery({
    queryKey: NOTIFICATIONS,
    queryFn: async ({ signal }) => valueOf(await api.getNotifications({}, { signal })).notifications,
  });
  const change = useAction((approvalMails: boolean) => api.updateNotifications({ body: { approvalMails } }), {
    stale: [NOTIFICATIONS],
  });
  const { user } = useMe();
  if (error !== null) return <Failed error={error} />;
  if (data?.mailAvailable !== true) return null;
  return (
    <Card title="Mail">
      <Stack>
        <Problem text={change.problem} />
        <Switch
          label="Mail me when a payment waits for approval"
          description={`To ${user.email}. Of many payments in an hour you receive one mail that lists them.`}
          checked={data.approvalMails}
          disabled={change.isBusy}
          onChange={({ currentTarget }) => void change.run(currentTarget.checked)}
        />
      </Stack>
    </Card>
  );
}

const SESSIONS = [["sessions"]];

function Sessions(): ReactElement {
  const { data, error, isPending } = useQuery({
    queryKey: ["sessions"],
    queryFn: async ({ signal }) => valueOf(await api.listSessions({}, { signal })).sessions,
  });
  const end = useAction((id: string) => api.endSession({ id }), { stale: SESSIONS });
  const endOthers = useAction(() => api.endOtherSessions(), { stale: SESSIONS });
  return (
    <Card
      title="Sessions"
      about="Devices and browsers in which you are signed in."
      actions={
        data !== undefined && data.length > 1 ? (
          <Button variant="default" loading={endOthers.isBusy} onClick={() => void endOthers.run()}>
            Sign out everywhere else
          </Button>
        ) : undefined
      }
      flush
    >
      <Problem text={`${end.problem}${endOthers.problem}`} />
      {isPending ? <Waiting lines={2} /> : null}
      {error === null ? null : <Failed error={error} />}
      {data === undefined ? null : (
        <table className="rows stacked">
          <thead>
            <tr>
              <th>Client</th>
              <th>Signed in</th>
              <th>Last seen</th>
              <th />
            </tr>
          </thead>
          <tbody>
            {data.map((session) => (
              <tr key={session.id}>
                <td className="main break">{clientOf(session.userAgent)}</td>
                <td className="away">
                  <When iso={session.createdAt} />
                </td>
                <td>
                  <When iso={session.lastSeenAt} />
                </td>
                <td className="right">
                  {session.current ? (
                    <Badge color="teal">This one</Badge>
                  ) : (
                    <Button
                      variant="subtle"
                      size="compact-sm"
                      color="red"
                      onClick={() => void end.run(session.id)}
                    >
                      Sign out
                    </Button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Card>
  );
}

const BROWSER = /(Firefox|Edg|OPR|Chrome|Safari)\/(\d+)/;
const SYSTEM = /iPhone|iPad|Android|Windows|Mac OS X|Linux/;

/** Returns `Chrome 130 on Linux`, or the client's own name. */
function clientOf(userAgent: string | null): string {
  if (userAgent === null) return "Unknown client";
  const [, browser, version] = BROWSER.exec(userAgent) ?? [];
  if (browser === undefined) return userAgent;
  const system = SYSTEM.exec(userAgent)?.[0];
  return `${browser} ${version ?? ""}${system === undefined ? "" : ` on ${system}`}`;
}
