import { Button, Stack, Text } from "@mantine/core";
import type { ReactElement } from "react";
import { useState } from "react";
import { Entrance } from "../entrance.tsx";
import { Icon } from "../icons.tsx";
import { AddPasskey, AddTotp } from "../parts/factors.tsx";
import { Problem } from "../parts/problem.tsx";
import { hasPasskeys, NO_PASSKEYS } from "../passkeys.ts";
import { useMe, useSignOut } from "../session.tsx";

interface EnrolProps {
  /** Whether the organization admits no user without a second factor. */
  readonly isRequired?: boolean;
  readonly onDone?: () => void;
}

/** Enrols a person's first second factor, right after sign-in. */
export function Enrol({ isRequired = false, onDone = () => undefined }: EnrolProps): ReactElement {
  const { organization, user } = useMe();
  const { problem, signOut } = useSignOut();
  const [how, setHow] = useState<"passkey" | "totp" | null>(null);
  return (
    <Entrance
      title="Protect your account"
      about={
        isRequired
          ? `${organization.name} requires a second factor. Enrol one to go on.`
          : `You are signed in as ${user.email}. Keys, budgets and members need a second factor; enrol it now, while your sign-in is fresh.`
      }
    >
      <Stack>
        {how === null ? (
          <>
            {hasPasskeys() ? (
              <Button size="md" leftSection={<Icon name="finger" />} onClick={() => setHow("passkey")}>
                Create a passkey
              </Button>
            ) : null}
            <Button
              size="md"
              variant={hasPasskeys() ? "default" : "filled"}
              leftSection={<Icon name="shield" />}
              onClick={() => setHow("totp")}
            >
              Use an authenticator app
            </Button>
            <Text size="xs" c="dimmed">
              {hasPasskeys()
                ? "A passkey is a finger, a face or a PIN on this device, and signs you in without a password as well."
                : NO_PASSKEYS}
            </Text>
          </>
        ) : null}
        {how === "passkey" ? <AddPasskey onDone={onDone} onCancel={() => setHow(null)} /> : null}
        {how === "totp" ? <AddTotp onDone={onDone} onCancel={() => setHow(null)} /> : null}
        <Problem text={problem} />
        {isRequired ? (
          <Button variant="subtle" onClick={() => void signOut()}>
            Sign out
          </Button>
        ) : (
          <Button variant="subtle" onClick={onDone}>
            Later
          </Button>
        )}
      </Stack>
    </Entrance>
  );
}
