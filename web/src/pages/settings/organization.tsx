import { Button, Group, Select, Stack, Switch, Text, TextInput } from "@mantine/core";
import { IdentityProvider } from "./identity-provider.tsx";
import { type ReactElement, type SyntheticEvent, useState } from "react";
import { changesOf, useAction } from "../../action.ts";
import { api } from "../../api.ts";
import { OPTIONS_MAX } from "../../containers.ts";
import { number, titled } from "../../format.ts";
import { type Settings, useOrganization } from "../../organization.ts";
import { Card, Fact, Facts, Waiting } from "../../parts/parts.tsx";
import { Failed, Problem } from "../../parts/problem.tsx";
import { ME, useMay } from "../../session.tsx";

const STALE = [["organization"], ME];

export function Organization(): ReactElement {
  const isOwner = useMay("owner");
  const { data, error } = useOrganization();
  if (data === undefined) return error === null ? <Waiting lines={3} /> : <Failed error={error} />;
  return (
    <Stack>
      <Name key={`${data.name} ${data.timezone ?? ""}`} organization={data} />
      <About organization={data} />
      <SecondFactor organization={data} />
      {isOwner ? <IdentityProvider /> : null}
      <WalletOwner key={data.walletOwner} organization={data} />
    </Stack>
  );
}

const zones = (): string[] => ["UTC", ...Intl.supportedValuesOf("timeZone")];

function Name({ organization }: { readonly organization: Settings }): ReactElement {
  const isAdmin = useMay("admin");
  const { name, timezone } = organization;
  const [fields, setFields] = useState({ name, timezone });
  const changes = changesOf({ name, timezone }, fields);
  const change = useAction(() => api.updateOrganization({ body: changes }), {
    stale: STALE,
    fields: ["name", "timezone"],
  });
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    void change.run();
  };
  return (
    <Card title="Organization">
      <form onSubmit={submit} noValidate>
        <Stack>
          <Problem text={change.problem} />
          <TextInput
            label="Name"
            value={fields.name}
            disabled={!isAdmin}
            error={change.at("name")}
            onChange={({ currentTarget }) => setFields({ ...fields, name: currentTarget.value })}
          />
          <Select
            label="Time zone"
            description="Days in lists and charts are those of this time zone, and new rules on the time of day start with it."
            placeholder="Each person’s own"
            searchable
            clearable
            limit={OPTIONS_MAX}
            data={[...new Set([...zones(), ...(timezone === null ? [] : [timezone])])]}
            value={fields.timezone}
            disabled={!isAdmin}
            error={change.at("timezone")}
            onChange={(zone) => setFields({ ...fields, timezone: zone })}
          />
          {isAdmin ? (
            <Group justify="flex-end">
              <Button type="submit" loading={change.isBusy} disabled={Object.keys(changes).length === 0}>
                Save
              </Button>
            </Group>
          ) : null}
        </Stack>
      </form>
    </Card>
  );
}

function About({ organization }: { readonly organization: Settings }): ReactElement {
  const { limits } = organization;
  return (
    <Card title="Plan and limits">
      <Facts>
        <Fact label="Id">
          <span className="mono">{organization.id}</span>
        </Fact>
        <Fact label="Plan">{titled(organization.plan)}</Fact>
        <Fact label="Requests in a minute">
          {number(limits.restPerMinute)} over REST and {number(limits.mcpPerMinute)} over MCP for each key.
          What people do here counts apart.
        </Fact>
      </Facts>
    </Card>
  );
}

function SecondFactor({ organization }: { readonly organization: Settings }): ReactElement {
  const isOwner = useMay("owner");
  const change = useAction(
    (requireSecondFactor: boolean) => api.updateOrganization({ body: { requireSecondFactor } }),
    { stale: STALE },
  );
  return (
    <Card title="Second factor">
      <Stack>
        <Problem text={change.problem} />
        <Switch
          label="Require a second factor for everybody"
          description="People without one can do nothing but enrol one, from their next request on. Keys and agents go on."
          checked={organization.requireSecondFactor}
          disabled={!isOwner || change.isBusy}
          onChange={({ currentTarget }) => void change.run(currentTarget.checked)}
        />
      </Stack>
    </Card>
  );
}

function WalletOwner({ organization }: { readonly organization: Settings }): ReactElement {
  const isOwner = useMay("owner");
  const [address, setAddress] = useState(organization.walletOwner ?? "");
  const [signature, setSignature] = useState("");
  const change = useAction(
    () =>
      api.updateOrganization({
        body: {
          walletOwner: address.trim() === "" ? null : address.trim(),
          ...(signature.trim() === "" ? {} : { walletOwnerSignature: signature.trim() }),
        },
      }),
    { stale: STALE, fields: ["walletOwner", "walletOwnerSignature"] },
  );
  const challenge = change.refused?.challenge ?? null;
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    void change.run();
  };
  return (
    <Card
      title="Wallet owner"
      about="The address of a key of your own that owns the wallets of agents created from now on."
    >
      <form onSubmit={submit} noValidate>
        <Stack>
          <Problem text={change.problem} />
          <TextInput
            aria-label="Address"
            placeholder="0x… (none: new agents have no wallet of yours)"
            value={address}
            disabled={!isOwner}
            error={change.at("walletOwner")}
            onChange={({ currentTarget }) => setAddress(currentTarget.value)}
            classNames={{ input: "mono" }}
          />
          {challenge === null ? null : (
            <TextInput
              label="Signature"
              description={`Sign this text with the owner’s key (EIP-191): ${challenge}`}
              placeholder="0x…"
              value={signature}
              error={change.at("walletOwnerSignature")}
              onChange={({ currentTarget }) => setSignature(currentTarget.value)}
              classNames={{ input: "mono" }}
            />
          )}
          {organization.treasury === null ? null : (
            <Text size="sm">
              Treasury, for deposits: <span className="mono">{organization.treasury.address}</span> on{" "}
              {organization.treasury.chainCaip2}
            </Text>
          )}
          <Text size="sm" c="dimmed">
            The service never holds this key. Whoever does can withdraw everything, and replace or remove the
            service.
          </Text>
          {isOwner ? (
            <Group justify="flex-end">
              <Button
                type="submit"
                loading={change.isBusy}
                disabled={address.trim() === (organization.walletOwner ?? "")}
              >
                Save
              </Button>
            </Group>
          ) : null}
        </Stack>
      </form>
    </Card>
  );
}
