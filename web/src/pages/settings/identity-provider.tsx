import { Button, Group, PasswordInput, Select, Stack, Switch, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactElement, type SyntheticEvent, useState } from "react";
import { valueOf } from "../../../../src/client/client.ts";
import type { Output } from "../../../../src/client/types.ts";
import { useAction } from "../../action.ts";
import { api } from "../../api.ts";
import { Card, Waiting } from "../../parts/parts.tsx";
import { Failed, Problem } from "../../parts/problem.tsx";

const STALE = [["sso"]];
const NOBODY = "nobody";

export function IdentityProvider(): ReactElement {
  const { data, error } = useQuery({
    queryKey: ["sso"],
    queryFn: async ({ signal }) => valueOf(await api.getSso({}, { signal })),
  });
  return (
    <Card
      title="Company sign-in"
      about="People with an address in your domains sign in by your identity provider (OpenID Connect)."
    >
      {data === undefined ? (
        error === null ? (
          <Waiting />
        ) : (
          <Failed error={error} />
        )
      ) : (
        <Form settings={data} />
      )}
    </Card>
  );
}

function Form({ settings }: { readonly settings: Output<"getSso"> }): ReactElement {
  const { callbackUrl, logoutUrl, sso } = settings;
  const [issuer, setIssuer] = useState(sso?.issuer ?? "");
  const [clientId, setClientId] = useState(sso?.clientId ?? "");
  const [clientSecret, setClientSecret] = useState("");
  const [domains, setDomains] = useState(sso?.domains.join(", ") ?? "");
  const [required, setRequired] = useState(sso?.required ?? false);
  const [role, setRole] = useState<string>(sso === null ? "member" : (sso.jit?.role ?? NOBODY));
  const body = {
    issuer: issuer.trim(),
    clientId: clientId.trim(),
    ...(clientSecret === "" ? {} : { clientSecret }),
    domains: domains.split(/[\s,]+/).filter((domain) => domain !== ""),
    required,
    jit: role === "member" || role === "auditor" ? ({ role } as const) : null,
  };
  const fields = ["issuer", "clientId", "clientSecret", "domains"];
  const save = useAction(() => api.setSso({ body }), { stale: STALE, fields });
  const remove = useAction(() => api.removeSso(), { stale: STALE });
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    void save.run();
  };
  return (
    <form onSubmit={submit} noValidate>
      <Stack>
        <Problem text={`${save.problem}${remove.problem}`} />
        <Text size="sm" c="dimmed" className="break">
          At the provider, register the redirect URI {callbackUrl} and the back-channel logout URI {logoutUrl}
          .
        </Text>
        <TextInput
          label="Issuer"
          placeholder="https://login.example.com"
          value={issuer}
          error={save.at("issuer")}
          onChange={({ currentTarget }) => setIssuer(currentTarget.value)}
        />
        <TextInput
          label="Client ID"
          value={clientId}
          error={save.at("clientId")}
          onChange={({ currentTarget }) => setClientId(currentTarget.value)}
        />
        <PasswordInput
          label="Client secret"
          description={sso === null ? undefined : "Leave it empty to keep it."}
          autoComplete="off"
          value={clientSecret}
          error={save.at("clientSecret")}
          onChange={({ currentTarget }) => setClientSecret(currentTarget.value)}
        />
        <TextInput
          label="E-mail domains"
          placeholder="example.com, example.org"
          value={domains}
          error={save.at("domains")}
          onChange={({ currentTarget }) => setDomains(currentTarget.value)}
        />
        <Select
          label="A new person with a verified address becomes"
          data={[
            { value: NOBODY, label: "Nobody: people are invited" },
            { value: "member", label: "Member" },
            { value: "auditor", label: "Auditor" },
          ]}
          value={role}
          onChange={(value) => setRole(value ?? NOBODY)}
        />
        <Switch
          label="Require it"
          description="People other than owners sign in there alone, and every session lasts 12 hours."
          checked={required}
          onChange={({ currentTarget }) => setRequired(currentTarget.checked)}
        />
        <Group justify="flex-end">
          {sso === null ? null : (
            <Button variant="default" color="red" loading={remove.isBusy} onClick={() => void remove.run()}>
              Remove
            </Button>
          )}
          <Button type="submit" loading={save.isBusy}>
            Save
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
