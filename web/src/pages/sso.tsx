import { Alert, Anchor, Loader, Stack } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { type ReactElement, useEffect, useState } from "react";
import { api, sentenceOf } from "../api.ts";
import { Entrance } from "../entrance.tsx";
import { Icon } from "../icons.tsx";
import { signedIn } from "../session.tsx";
import { pageBefore } from "../sso.ts";

/** Parameters of an identity provider's response that the service reads. */
const NAMES = ["code", "state", "iss", "error"] as const;

/** Takes the provider's response and removes it from the address, so that it does not stay in the history. */
function takeAnswer(): { readonly state: string } & Partial<Record<(typeof NAMES)[number], string>> {
  const given = new URLSearchParams(location.search);
  history.replaceState(null, "", location.pathname);
  const answer = Object.fromEntries(
    NAMES.flatMap((name) => {
      const value = given.get(name);
      return value === null ? [] : [[name, value]];
    }),
  );
  return { ...answer, state: given.get("state") ?? "none" };
}

/** Page to which an identity provider sends people back. */
export function Sso(): ReactElement {
  const { organizationId } = useParams({ from: "/sso/$organizationId" });
  const client = useQueryClient();
  const navigate = useNavigate();
  const [problem, setProblem] = useState("");
  const [answer] = useState(takeAnswer);
  useEffect(() => {
    document.title = "Sign in · Agent Spending Control";
    const finish = async (): Promise<void> => {
      const finished = await api.finishSso({ body: { ...answer, organizationId } });
      if (!finished.ok) return setProblem(sentenceOf(finished.refused));
      signedIn(client, finished.value);
      void navigate({ href: pageBefore(), replace: true });
    };
    void finish();
  }, [answer, client, navigate, organizationId]);
  return (
    <Entrance title="Sign in">
      {problem === "" ? (
        <Loader role="status" aria-label="Signing in" />
      ) : (
        <Stack>
          <Alert id="problem" role="alert" color="yellow" variant="light" icon={<Icon name="info" />}>
            {problem}
          </Alert>
          <Anchor href="/">Back to the sign-in</Anchor>
        </Stack>
      )}
    </Entrance>
  );
}
