import { Alert, Badge, Button, Group, PasswordInput, Select, Stack, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactElement, type SyntheticEvent, useState } from "react";
import { valueOf } from "../../../../src/client/client.ts";
import type { Output } from "../../../../src/client/types.ts";
import { useAction } from "../../action.ts";
import { api } from "../../api.ts";
import { money, titled } from "../../format.ts";
import { Icon } from "../../icons.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { Card, Fact, Facts, Waiting, When } from "../../parts/parts.tsx";
import { Failed, Problem } from "../../parts/problem.tsx";
import { Block } from "../../parts/secret.tsx";
import { useMay } from "../../session.tsx";

type Rails = Output<"listRails">;
type Connection = NonNullable<Rails["connection"]>;

const RAILS_KEY = ["rails"] as const;
/** The organization's settings contain which rails are sandboxes. */
const STALE = [RAILS_KEY, ["organization"]];

const CARD_MODES = {
  sandbox: "Sandbox: card payments are simulated, no money moves",
  test: "Test mode: cards of a test account, no real money moves",
  real: "Real cards",
} as const;

const WALLET_MODES = {
  local: "Play money on a local chain",
  real: "Real money on chain",
  off: "Off: no chain is configured",
} as const;

export function RailSettings(): ReactElement {
  const { data, error } = useQuery({
    queryKey: RAILS_KEY,
    queryFn: async ({ signal }) => valueOf(await api.listRails({}, { signal })),
  });
  if (data === undefined) return error === null ? <Waiting lines={3} /> : <Failed error={error} />;
  const { connection } = data;
  return (
    <Stack>
      <Card title="Rails" about="How the agents’ payments reach their recipients.">
        <Facts>
          <Fact label="Cards">{CARD_MODES[data.rails.card]}</Fact>
          <Fact label="Wallets">{WALLET_MODES[data.rails.wallet]}</Fact>
        </Facts>
      </Card>
      {connection === null ? (
        <Connect issuers={data.issuers} />
      ) : (
        <>
          <Connected connection={connection} balanceCents={data.balanceCents} />
          <Authorizations key={String(connection.hasAuthorizationSecret)} connection={connection} />
          <CardPages key={connection.publishableKey} connection={connection} />
        </>
      )}
    </Stack>
  );
}

const issuerLabel = (name: string): string => titled(name);

function Connect({ issuers }: { readonly issuers: readonly string[] }): ReactElement {
  const isOwner = useMay("owner");
  const [cardIssuer, setIssuer] = useState(issuers[0] ?? "stripe");
  const [apiKey, setKey] = useState("");
  const connect = useAction(() => api.connectCardIssuer({ cardIssuer, body: { apiKey: apiKey.trim() } }), {
    stale: STALE,
    fields: ["apiKey"],
  });
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    void connect.run();
  };
  return (
    <Card
      title="Connect a card issuer"
      about="Each card payment then gets a virtual card of its own, limited to its amount. Card payments are simulated until then."
    >
      <form onSubmit={submit} noValidate>
        <Stack>
          <Problem text={connect.problem} />
          <Select
            label="Issuer"
            data={issuers.map((value) => ({ value, label: issuerLabel(value) }))}
            value={cardIssuer}
            allowDeselect={false}
            disabled={!isOwner}
            onChange={(value) => setIssuer(value ?? cardIssuer)}
          />
          <PasswordInput
            label="Restricted key"
            description="Write: Issuing cards, cardholders, authorizations, transactions and disputes, ephemeral keys, webhook endpoints. Read: account, balance, events. It is sealed, and never shown again."
            placeholder="rk_…"
            autoComplete="off"
            value={apiKey}
            disabled={!isOwner}
            error={connect.at("apiKey")}
            onChange={({ currentTarget }) => setKey(currentTarget.value)}
          />
          {isOwner ? (
            <Group justify="flex-end">
              <Button type="submit" loading={connect.isBusy} disabled={apiKey.trim() === ""}>
                Connect
              </Button>
            </Group>
          ) : (
            <Text size="sm" c="dimmed">
              Only owners connect an issuer.
            </Text>
          )}
        </Stack>
      </form>
    </Card>
  );
}

interface ConnectedProps {
  readonly connection: Connection;
  readonly balanceCents: number | null;
}

function Connected({ balanceCents, connection }: ConnectedProps): ReactElement {
  const isOwner = useMay("owner");
  const [isLeaving, setLeaving] = useState(false);
  const { cardIssuer } = connection;
  const disconnect = useAction(() => api.disconnectCardIssuer({ cardIssuer }), { stale: STALE });
  return (
    <Card
      title={issuerLabel(cardIssuer)}
      actions={
        isOwner ? (
          <Button variant="default" color="red" onClick={() => setLeaving(true)}>
            Disconnect
          </Button>
        ) : undefined
      }
    >
      <Stack>
        {connection.fault === null ? null : (
          <Alert color="red" variant="light" icon={<Icon name="info" />} title="Its books can’t be read">
            {connection.fault}
          </Alert>
        )}
        <Facts>
          <Fact label="Account">
            <Badge color={connection.isTest ? "yellow" : "teal"}>
              {connection.isTest ? "Test mode" : "Live"}
            </Badge>{" "}
            key …<span className="mono">{connection.keyHint}</span>
          </Fact>
          <Fact label="Available for authorizations">
            {balanceCents === null ? "The issuer does not say" : money(balanceCents)}
          </Fact>
          <Fact label="Books read">
            <When iso={connection.readThrough} />
          </Fact>
          <Fact label="Last event">
            <When iso={connection.lastEventAt} />
          </Fact>
          <Fact label="Last authorization asked for">
            <When iso={connection.lastRequestAt} />
          </Fact>
          <Fact label="Without an answer the network">
            {connection.timeoutCheck === null ? (
              "Not checked yet"
            ) : (
              <>
                {connection.timeoutCheck.isApproved ? "approves" : "declines"}, checked{" "}
                <When iso={connection.timeoutCheck.checkedAt} />
              </>
            )}
          </Fact>
        </Facts>
      </Stack>
      {isLeaving ? (
        <Confirm
          title={`Disconnect ${issuerLabel(cardIssuer)}?`}
          action="Disconnect"
          isBusy={disconnect.isBusy}
          problem={disconnect.problem}
          onClose={() => setLeaving(false)}
          onConfirm={() => void disconnect.run()}
        >
          Its key is erased, and later card payments are simulated. Refunds that come afterwards are not seen.
        </Confirm>
      ) : null}
    </Card>
  );
}

function Authorizations({ connection }: { readonly connection: Connection }): ReactElement {
  const isOwner = useMay("owner");
  const { cardIssuer, hasAuthorizationSecret } = connection;
  const [authorizationSecret, setSecret] = useState("");
  const save = useAction(
    () => api.connectCardIssuer({ cardIssuer, body: { authorizationSecret: authorizationSecret.trim() } }),
    { stale: STALE, fields: ["authorizationSecret"] },
  );
  const submit = async (event: SyntheticEvent): Promise<void> => {
    event.preventDefault();
    if ((await save.run()) !== null) setSecret("");
  };
  return (
    <Card
      title="Real-time authorization"
      about="The issuer asks the ledger before each charge. A pause or a changed limit then binds at once."
    >
      <Stack>
        {hasAuthorizationSecret ? null : (
          <Alert color="yellow" variant="light" icon={<Icon name="info" />}>
            Not set up yet: only each card’s own limit binds, and a pause stops no card that is already made.
          </Alert>
        )}
        <Text size="sm">
          At the issuer, under Issuing, Authorizations, paste this address, and choose that a time-out{" "}
          <b>declines</b>. No API tells what was chosen there; in test mode, a check finds it out.
        </Text>
        <Block label="Authorization URL" text={connection.authorizationUrl} />
        {isOwner ? (
          <form onSubmit={(event) => void submit(event)} noValidate>
            <Stack>
              <Problem text={save.problem} />
              <PasswordInput
                label="Signing secret"
                description={
                  hasAuthorizationSecret
                    ? "Replaces the one that is known."
                    : "The issuer shows it beside the address."
                }
                placeholder="whsec_…"
                autoComplete="off"
                value={authorizationSecret}
                error={save.at("authorizationSecret")}
                onChange={({ currentTarget }) => setSecret(currentTarget.value)}
              />
              <Group justify="flex-end">
                <Button type="submit" loading={save.isBusy} disabled={authorizationSecret.trim() === ""}>
                  Save the secret
                </Button>
              </Group>
            </Stack>
          </form>
        ) : null}
        {connection.timeoutCheck?.isApproved === true ? (
          <Alert color="red" variant="light" icon={<Icon name="info" />}>
            Without an answer the network approves: choose at the issuer that a time-out declines.
          </Alert>
        ) : null}
        {isOwner && connection.isTest ? <Check cardIssuer={cardIssuer} /> : null}
      </Stack>
    </Card>
  );
}

function Check({ cardIssuer }: { readonly cardIssuer: string }): ReactElement {
  const [result, setResult] = useState<Output<"checkCardIssuer"> | null>(null);
  const check = useAction(() => api.checkCardIssuer({ cardIssuer }), { stale: [RAILS_KEY] });
  const run = async (): Promise<void> => {
    setResult(null);
    setResult(await check.run());
  };
  return (
    <Stack>
      <Problem text={check.problem} />
      {result === null ? null : (
        <Alert
          color={result.isWorking ? "teal" : "red"}
          variant="light"
          role="status"
          icon={<Icon name={result.isWorking ? "check" : "info"} />}
          title={result.isWorking ? "It works" : "It does not work yet"}
        >
          <div>To be approved: {result.approved.reason}</div>
          <div>To be refused: {result.refused.reason}</div>
          <div>Left unanswered: {result.unanswered.reason}</div>
        </Alert>
      )}
      <Group justify="space-between">
        <Text size="sm" c="dimmed">
          Runs three test authorizations: approved, refused, and left unanswered.
        </Text>
        <Button variant="default" loading={check.isBusy} onClick={() => void run()}>
          Check
        </Button>
      </Group>
    </Stack>
  );
}

function CardPages({ connection }: { readonly connection: Connection }): ReactElement {
  const isOwner = useMay("owner");
  const { cardIssuer } = connection;
  const known = connection.publishableKey ?? "";
  const [publishableKey, setKey] = useState(known);
  const save = useAction(
    () => api.connectCardIssuer({ cardIssuer, body: { publishableKey: publishableKey.trim() } }),
    { stale: STALE, fields: ["publishableKey"] },
  );
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    void save.run();
  };
  return (
    <Card
      title="Show cards"
      about="Admins see a card’s number and code on its page, in a frame that the issuer serves: they never pass this service."
    >
      <form onSubmit={submit} noValidate>
        <Stack>
          <Problem text={save.problem} />
          <TextInput
            label="Publishable key"
            placeholder="pk_…"
            value={publishableKey}
            disabled={!isOwner}
            error={save.at("publishableKey")}
            onChange={({ currentTarget }) => setKey(currentTarget.value)}
            classNames={{ input: "mono" }}
          />
          {isOwner ? (
            <Group justify="flex-end">
              <Button
                type="submit"
                loading={save.isBusy}
                disabled={publishableKey.trim() === "" || publishableKey.trim() === known}
              >
                Save the key
              </Button>
            </Group>
          ) : null}
        </Stack>
      </form>
    </Card>
  );
}
