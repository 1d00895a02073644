import { Anchor, Button, Code, Divider, Select, Stack, Text, TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { type ReactElement, type SyntheticEvent, useEffect, useState } from "react";
import type { Refused } from "../../../src/client/types.ts";
import { api, sentence, sentenceOf } from "../api.ts";
import { Entrance } from "../entrance.tsx";
import { Icon } from "../icons.tsx";
import { CodeInput } from "../parts/code-input.tsx";
import { PasswordInput } from "../parts/password.tsx";
import { Problem } from "../parts/problem.tsx";
import { hasPasskeys, NO_PASSKEYS, PasskeyError, signByPasskey } from "../passkeys.ts";
import { goToProvider } from "../sso.ts";
import { signedIn, useSignedOutNote } from "../session.tsx";

const FIELDS = ["email", "password", "code"];

/** Sign-in by password, with a code if the account has one, or by passkey alone. */
export function SignIn(): ReactElement {
  const client = useQueryClient();
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const [code, setCode] = useState("");
  const [needsCode, setNeedsCode] = useState(false);
  const [organizations, setOrganizations] = useState<Refused["organizations"]>([]);
  const [organizationId, setOrganizationId] = useState<string | null>(null);
  const [refused, setRefused] = useState<Refused | null>(null);
  const note = useSignedOutNote();
  const [problem, setProblem] = useState(note);
  const [busy, setBusy] = useState<"password" | "passkey" | "provider" | null>(null);
  useEffect(() => {
    document.title = "Sign in · Agent Spending Control";
  }, []);
  useEffect(() => {
    if (problem !== "") document.getElementById("problem")?.focus();
  }, [problem]);

  const at = (path: string): string | undefined => {
    const found = refused?.issues.find((issue) => issue.path === path);
    return found === undefined ? undefined : sentence(found.message);
  };
  const take = (given: Refused): void => {
    if (given.code === "SECOND_FACTOR_REQUIRED") return setNeedsCode(true);
    if (given.code === "ORGANIZATION_REQUIRED") return setOrganizations(given.organizations);
    setRefused(given);
    setProblem(
      given.code === "UNAUTHORIZED" ? "The e-mail or the password is wrong." : sentenceOf(given, FIELDS),
    );
  };
  const begin = (how: "password" | "passkey" | "provider"): void => {
    setBusy(how);
    setRefused(null);
    setProblem("");
  };
  const send = async (typed: string): Promise<void> => {
    begin("password");
    const body = {
      email,
      password,
      ...(needsCode ? { code: typed } : {}),
      ...(organizationId === null ? {} : { organizationId }),
    };
    const answer = await api.signIn({ body });
    if (answer.ok) signedIn(client, answer.value);
    else {
      take(answer.refused);
      setCode("");
    }
    setBusy(null);
  };
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    void send(code);
  };
  const byPasskey = async (): Promise<void> => {
    begin("passkey");
    try {
      const options = await api.passkeySignInOptions();
      const answer = options.ok
        ? await api.signInWithPasskey({ body: { response: await signByPasskey(options.value) } })
        : options;
      if (answer.ok) signedIn(client, answer.value);
      else if (answer.refused.code === "SECOND_FACTOR_INVALID")
        setProblem("This passkey signs nobody in here.");
      else take(answer.refused);
    } catch (error) {
      if (!(error instanceof PasskeyError)) throw error;
      setProblem(error.message);
    }
    setBusy(null);
  };

  const byProvider = async (): Promise<void> => {
    begin("provider");
    const failed = await goToProvider({ email });
    if (failed === null) return;
    if (failed.code === "NOT_FOUND")
      setProblem("No company sign-in is set up for the domain of this e-mail.");
    else take(failed);
    setBusy(null);
  };

  return (
    <Entrance
      title="Sign in"
      about="Decide what your agents may spend."
      foot={
        <>
          Programs use keys instead: <Anchor href="/docs">API reference</Anchor>
        </>
      }
    >
      <form id="sign-in" method="post" noValidate onSubmit={submit}>
        <Stack>
          <Problem id="problem" text={problem} />
          <TextInput
            id="email"
            name="email"
            type="email"
            label="E-mail"
            autoComplete="username webauthn"
            required
            withAsterisk={false}
            value={email}
            onChange={({ currentTarget }) => setEmail(currentTarget.value)}
            error={at("email")}
          />
          <PasswordInput
            id="password"
            name="password"
            label="Password"
            autoComplete="current-password"
            required
            withAsterisk={false}
            value={password}
            onChange={({ currentTarget }) => setPassword(currentTarget.value)}
            error={at("password")}
          />
          <Text size="xs" c="dimmed">
            Forgot your password? {hasPasskeys() ? "Sign in with a passkey, or ask" : "Ask"} the operator of
            this service to reset it: <Code>npm run admin -- reset-password</Code>
          </Text>
          {needsCode ? (
            <CodeInput
              label="The six digits of your authenticator app"
              autoFocus
              value={code}
              onChange={setCode}
              onComplete={(typed) => void send(typed)}
              isBusy={busy !== null}
              error={at("code")}
            />
          ) : null}
          {organizations.length > 0 ? (
            <Select
              label="Organization"
              description="Your e-mail has accounts in several."
              data={organizations.map(({ id, name }) => ({ value: id, label: name }))}
              value={organizationId}
              onChange={setOrganizationId}
            />
          ) : null}
          <Button type="submit" loading={busy === "password"} fullWidth size="md">
            Sign in
          </Button>
          <Divider label="or" />
          <Button
            variant="default"
            size="md"
            fullWidth
            loading={busy === "provider"}
            onClick={() => void byProvider()}
          >
            Sign in with your company
          </Button>
          {hasPasskeys() ? (
            <>
              <Button
                variant="default"
                size="md"
                fullWidth
                leftSection={<Icon name="finger" />}
                loading={busy === "passkey"}
                onClick={() => void byPasskey()}
              >
                Sign in with a passkey
              </Button>
            </>
          ) : (
            <Text size="xs" c="dimmed">
              {NO_PASSKEYS} Sign in with your password and authenticator app here.
            </Text>
          )}
        </Stack>
      </form>
    </Entrance>
  );
}
