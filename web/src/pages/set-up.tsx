import { Alert, Button, Loader, Stack, TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type ReactElement, type SyntheticEvent, useEffect, useState } from "react";
import type { Refused } from "../../../src/client/types.ts";
import { api, sentence, sentenceOf } from "../api.ts";
import { Entrance } from "../entrance.tsx";
import { Icon } from "../icons.tsx";
import { forgetToken, tokenOfTheLink } from "../link-token.ts";
import { PasswordInput } from "../parts/password.tsx";
import { Problem } from "../parts/problem.tsx";
import { MeProvider, signedIn, useSession } from "../session.tsx";
import { StepUpProvider } from "../step-up.tsx";
import { Enrol } from "./enrol.tsx";

const FIELDS = ["organizationName", "name", "email", "password"];

type Phase = "checking" | "form" | "used" | "second factor";

/** First run: creates the organization and its owner, then the owner's second factor. */
export function SetUp(): ReactElement {
  const navigate = useNavigate();
  const [phase, setPhase] = useState<Phase>("checking");
  useEffect(() => {
    document.title = "Set up · Agent Spending Control";
    const check = async (): Promise<void> => {
      const token = tokenOfTheLink();
      if (token === "") return setPhase("used");
      const answer = await api.checkSetUp({ body: { token } });
      // Other problems are shown when the form is sent.
      setPhase(!answer.ok && answer.refused.code === "NOT_FOUND" ? "used" : "form");
    };
    void check();
  }, []);
  if (phase === "second factor") return <FirstFactor onDone={() => void navigate({ to: "/" })} />;
  return (
    <Entrance
      title="Set up"
      about={
        phase === "used" ? undefined : "Make the first organization and become its owner. It takes a minute."
      }
    >
      {phase === "checking" ? <Loader role="status" aria-label="Looking at the link" /> : null}
      {phase === "used" ? <Used /> : null}
      {phase === "form" ? <SetUpForm onDone={() => setPhase("second factor")} /> : null}
    </Entrance>
  );
}

const Used = (): ReactElement => (
  <Stack>
    <Alert id="problem" role="alert" color="yellow" variant="light" icon={<Icon name="info" />}>
      This link does not work. Copied in part? Open the whole link that the start printed. Used already? Sign
      in as the owner, ask an owner or admin for an invite, or have the operator make another organization:{" "}
      <code>npm run admin -- create-organization</code>.
    </Alert>
    <Button component="a" href="/">
      Sign in
    </Button>
  </Stack>
);

function SetUpForm({ onDone }: { readonly onDone: () => void }): ReactElement {
  const client = useQueryClient();
  const [fields, setFields] = useState({ organizationName: "", name: "", email: "", password: "" });
  const [refused, setRefused] = useState<Refused | null>(null);
  const [busy, setBusy] = useState(false);
  const field = (name: keyof typeof fields) => ({
    id: name,
    name,
    value: fields[name],
    required: true,
    withAsterisk: false,
    onChange: ({ currentTarget }: { readonly currentTarget: HTMLInputElement }) =>
      setFields({ ...fields, [name]: currentTarget.value }),
    error: fieldError(refused, name),
  });
  const submit = async (event: SyntheticEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setRefused(null);
    const answer = await api.setUp({ body: { ...fields, token: tokenOfTheLink() } });
    if (answer.ok) {
      forgetToken();
      signedIn(client, answer.value);
      return onDone();
    }
    setBusy(false);
    setRefused(answer.refused);
  };
  return (
    <form method="post" noValidate onSubmit={(event) => void submit(event)}>
      <Stack>
        <Problem text={refused === null ? "" : messageOf(refused)} />
        <TextInput label="Organization" autoComplete="organization" {...field("organizationName")} />
        <TextInput label="Your name" autoComplete="name" {...field("name")} />
        <TextInput label="E-mail" type="email" autoComplete="username" {...field("email")} />
        <PasswordInput
          label="Password"
          description="At least 12 characters and hard to guess: a few unrelated words make a good one."
          autoComplete="new-password"
          {...field("password")}
        />
        <Button type="submit" size="md" loading={busy}>
          Set up
        </Button>
      </Stack>
    </form>
  );
}

const fieldError = (refused: Refused | null, name: string): string | undefined => {
  const found = refused?.issues.find(({ path }) => path === name);
  return found === undefined ? undefined : sentence(found.message);
};

const messageOf = (refused: Refused): string =>
  refused.code === "NOT_FOUND"
    ? "This link is not complete or not valid any more: it was used or withdrawn, or is too old."
    : sentenceOf(refused, FIELDS);

/** Enrols a first factor. A user who has just signed in may do this without another factor. */
export function FirstFactor({ onDone }: { readonly onDone: () => void }): ReactElement | null {
  const { data: me } = useSession();
  if (me === undefined || me === null) return null;
  return (
    <MeProvider value={me}>
      <StepUpProvider>
        <Enrol onDone={onDone} />
      </StepUpProvider>
    </MeProvider>
  );
}
