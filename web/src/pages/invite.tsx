import { Alert, Button, Loader, Stack, TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type ReactElement, type SyntheticEvent, useEffect, useState } from "react";
import type { Output, Refused } from "../../../src/client/types.ts";
import { api, sentence, sentenceOf } from "../api.ts";
import { Entrance } from "../entrance.tsx";
import { Icon } from "../icons.tsx";
import { forgetToken, tokenOfTheLink } from "../link-token.ts";
import { Written } from "../parts/parts.tsx";
import { PasswordInput } from "../parts/password.tsx";
import { Problem } from "../parts/problem.tsx";
import { goToProvider } from "../sso.ts";
import { signedIn } from "../session.tsx";
import { withArticle } from "../words.ts";
import { FirstFactor } from "./set-up.tsx";

const FIELDS = ["name", "password"];
type Invited = Output<"checkInvite">;

const NOT_GOOD = "This link is not complete or not valid any more: it was used or withdrawn, or is too old.";

export function AcceptInvite(): ReactElement {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [refused, setRefused] = useState<Refused | null>(null);
  const [busy, setBusy] = useState(false);
  const [hasJoined, setJoined] = useState(false);
  const [token] = useState(tokenOfTheLink);
  /** Null if the token is not valid. */
  const [invited, setInvited] = useState<Invited | "checking" | "unknown" | null>("checking");
  useEffect(() => {
    document.title = "Join · Agent Spending Control";
    const check = async (): Promise<void> => {
      const answer = await api.checkInvite({ body: { token } });
      if (answer.ok) return setInvited(answer.value);
      // Other problems are shown when the form is sent.
      setInvited(["NOT_FOUND", "VALIDATION_FAILED"].includes(answer.refused.code) ? null : "unknown");
    };
    void check();
  }, [token]);

  const at = (path: string): string | undefined => {
    const found = refused?.issues.find((issue) => issue.path === path);
    return found === undefined ? undefined : sentence(found.message);
  };
  const submit = async (event: SyntheticEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setRefused(null);
    const answer = await api.acceptInvite({ body: { token, name, password } });
    if (answer.ok) {
      forgetToken();
      signedIn(client, answer.value);
      return setJoined(true);
    }
    setBusy(false);
    setRefused(answer.refused);
  };

  const byProvider = async (): Promise<void> => {
    setBusy(true);
    setRefused(await goToProvider({ token }));
    setBusy(false);
  };

  if (hasJoined) return <FirstFactor onDone={() => void navigate({ to: "/" })} />;
  if (invited === null) {
    return (
      <Entrance title="Join">
        <Alert id="problem" role="alert" color="yellow" variant="light" icon={<Icon name="info" />}>
          {NOT_GOOD}
        </Alert>
      </Entrance>
    );
  }
  if (invited === "checking") {
    return (
      <Entrance title="Join">
        <Loader role="status" aria-label="Looking at the invite" />
      </Entrance>
    );
  }
  const problem =
    refused === null ? "" : refused.code === "NOT_FOUND" ? NOT_GOOD : sentenceOf(refused, FIELDS);
  return (
    <Entrance
      title="Join"
      about={
        <>
          {invited === "unknown" ? "You were invited to an organization." : <Invitation of={invited} />}{" "}
          Choose the name that others see, and a password.
        </>
      }
    >
      <form method="post" noValidate onSubmit={(event) => void submit(event)}>
        <Stack>
          <Problem text={problem} />
          <TextInput
            id="name"
            name="name"
            label="Your name"
            autoComplete="name"
            value={name}
            onChange={({ currentTarget }) => setName(currentTarget.value)}
            error={at("name")}
          />
          <PasswordInput
            id="password"
            name="password"
            label="Password"
            description="At least 12 characters and hard to guess: a few unrelated words make a good one."
            autoComplete="new-password"
            value={password}
            onChange={({ currentTarget }) => setPassword(currentTarget.value)}
            error={at("password")}
          />
          <Button type="submit" size="md" loading={busy}>
            Join
          </Button>
          {invited !== "unknown" && invited.identityProvider ? (
            <Button variant="default" size="md" disabled={busy} onClick={() => void byProvider()}>
              Join with your company’s sign-in
            </Button>
          ) : null}
        </Stack>
      </form>
    </Entrance>
  );
}

const Invitation = ({ of }: { readonly of: Invited }): ReactElement => (
  <>
    <Written text={of.inviterName} /> invites you to the organization{" "}
    <b>
      <Written text={of.organizationName} />
    </b>
    , as {withArticle(of.role)}. You sign in as <Written text={of.email} />.
  </>
);
