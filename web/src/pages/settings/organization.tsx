import { Button, Group, Stack, Switch, Text, TextInput } from "@mantine/core";
import { type ReactElement, type SyntheticEvent, useState } from "react";
import { useAction } from "../../action.ts";
import { api } from "../../api.ts";
import { number, titled } from "../../format.ts";
import { type Settings, useOrganization } from "../../organization.ts";
import { Card, Fact, Facts, Waiting, Written } from "../../parts/parts.tsx";
import { Failed, Problem } from "../../parts/problem.tsx";
import { ME, useMay } from "../../session.tsx";

const STALE = [["organization"], ME];

/** The organization, its plan and what it asks of its people. */
export function Organization(): ReactElement {
  const { data, error } = useOrganization();
  if (data === undefined) return error === null ? <Waiting lines={3} /> : <Failed error={error} />;
  return (
    <Stack>
      <About organization={data} />
      <SecondFactor organization={data} />
      <WalletOwner key={data.walletOwner} organization={data} />
    </Stack>
  );
}

function About({ organization }: { readonly organization: Settings }): ReactElement {
  const { limits } = organization;
  return (
    <Card title="Plan and limits">
      <Facts>
        <Fact label="Organization">
          <Written text={organization.name} />
        </Fact>
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
  const change = useAction(
    () => api.updateOrganization({ body: { walletOwner: address.trim() === "" ? null : address.trim() } }),
    { stale: STALE, fields: ["walletOwner"] },
  );
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
