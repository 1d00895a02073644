import { Alert, Badge, Button, Checkbox, Group, Radio, Stack, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { type ReactElement, useState } from "react";
import { valueOf } from "../../../src/client/client.ts";
import type { Output } from "../../../src/client/types.ts";
import { useAction } from "../action.ts";
import { api, refusedIn } from "../api.ts";
import { OPTIONS_MAX } from "../containers.ts";
import { Icon } from "../icons.tsx";
import { TYPED_MS } from "../parts/agent-select.tsx";
import { Drawer } from "../parts/dialog.tsx";
import { Card, Page, Waiting, Written } from "../parts/parts.tsx";
import { Failed, Problem } from "../parts/problem.tsx";
import { useMay } from "../session.tsx";
import { isTool, type Tool, TOOLS } from "../tools.ts";
import type { Agent } from "../words.ts";
import { AgentForm } from "./create-agent.tsx";

type Connection = Output<"getConnection">["connection"];

/** Page on which a person connects a client that asks for it, and chooses its agent and tools. */
export function ConnectClient(): ReactElement {
  const { id } = useParams({ from: "/app/connect/$id" });
  const isAdmin = useMay("admin");
  const { data, error, refetch } = useQuery({
    queryKey: ["connections", id],
    queryFn: async ({ signal }) => valueOf(await api.getConnection({ id }, { signal })).connection,
    enabled: isAdmin,
    refetchOnWindowFocus: false,
  });
  const refused = refusedIn(error);
  return (
    <Page title="Connect a client">
      {!isAdmin ? (
        <Problem text="Your role does not allow this. Ask an owner or admin." />
      ) : data !== undefined ? (
        <Consent connection={data} />
      ) : error === null ? (
        <Waiting lines={3} />
      ) : refused?.code === "NOT_FOUND" ? (
        <Problem text={refused.message} />
      ) : (
        <Failed error={error} retry={() => void refetch()} />
      )}
    </Page>
  );
}

function Consent({ connection }: { readonly connection: Connection }): ReactElement {
  const { id: connectionId } = connection;
  const client = useQueryClient();
  const [agent, setAgent] = useState<Agent | null>(null);
  /** Whether the agent was created here, so that nobody has its first key. */
  const [isNew, setNew] = useState(false);
  const [without, setWithout] = useState<readonly Tool[]>([]);
  const offered = TOOLS.filter(({ value }) => agent?.scopes?.includes(value) ?? true);
  const tools = offered.map(({ value }) => value).filter((tool) => !without.includes(tool));
  const stale = [["agents"]];
  const connect = useAction(
    ({ id, key }: Agent) =>
      api.connectClient({
        id,
        body: { connectionId, tools, ...(key === null ? {} : { revokeKeyId: key.id }) },
      }),
    {
      stale,
      onRefused: ({ code }) => {
        if (code !== "KEY_ALREADY_EXISTS") return;
        // Somebody gave the agent another key since the page was loaded.
        setAgent(null);
        void client.invalidateQueries({ queryKey: ["agents"] });
      },
    },
  );
  const deny = useAction(() => api.denyConnection({ body: { connectionId } }));
  const [isLeaving, setLeaving] = useState(false);
  const go = (to: { readonly redirectTo: string } | null): void => {
    if (to === null) return;
    setLeaving(true);
    location.assign(to.redirectTo);
  };
  const replaces = agent !== null && agent.key !== null && !isNew;
  const isBusy = connect.isBusy || deny.isBusy || isLeaving;
  return (
    <Stack>
      <Asking connection={connection} />
      <AgentChoice
        chosen={agent}
        onChoose={(chosen, made) => {
          setAgent(chosen);
          setNew(made);
          connect.clear();
        }}
      />
      {agent === null ? null : (
        <Card title="What the client may do" about="Untick what it is not to do.">
          <Checkbox.Group
            value={tools}
            onChange={(ticked) =>
              setWithout(
                offered.map(({ value }) => value).filter((tool) => !ticked.filter(isTool).includes(tool)),
              )
            }
          >
            <Stack gap="xs">
              {offered.map(({ label, value }) => (
                <Checkbox key={value} value={value} label={label} />
              ))}
            </Stack>
          </Checkbox.Group>
        </Card>
      )}
      {replaces ? (
        <Alert color="yellow" icon={<Icon name="key" />}>
          {agent.key?.kind === "oauth" ? (
            <>
              <Written text={agent.key.clientName ?? "A client"} /> is connected to this agent, and is cut
              off.
            </>
          ) : (
            "This agent has a key in use, which is revoked: whatever holds it stops working."
          )}
        </Alert>
      ) : null}
      <Problem text={connect.problem || deny.problem} />
      <Group>
        <Button
          loading={connect.isBusy || isLeaving}
          disabled={agent === null || tools.length === 0 || isBusy}
          onClick={() => agent !== null && void connect.run(agent).then(go)}
        >
          {replaces ? "Revoke and connect" : "Allow"}
        </Button>
        <Button variant="default" disabled={isBusy} onClick={() => void deny.run().then(go)}>
          Deny
        </Button>
      </Group>
    </Stack>
  );
}

/** Shows what is known of the client, and the address that receives the outcome. */
function Asking({ connection }: { readonly connection: Connection }): ReactElement {
  const { clientHost, clientName, isLoopback, returnsTo } = connection;
  return (
    <Card>
      <Stack gap="xs">
        <Text>
          <b>
            <Written text={clientName} />
          </b>{" "}
          wants to act, and to pay, as one of your agents.
        </Text>
        <Text size="sm" c="dimmed">
          {clientHost === null
            ? "The name is what the client says of itself."
            : `Described by ${clientHost}.`}{" "}
          You return to <b className="mono">{returnsTo}</b>.
        </Text>
        {isLoopback ? (
          <Alert color="yellow" icon={<Icon name="alert" />} title="A program on this computer">
            It asks from localhost, where any program could be waiting. Allow it only if you have just begun
            to connect it yourself.
          </Alert>
        ) : null}
      </Stack>
    </Card>
  );
}

interface ChoiceProps {
  readonly chosen: Agent | null;
  readonly onChoose: (agent: Agent, isNew: boolean) => void;
}

/** Choice of an agent by name. Typing finds further agents. */
function AgentChoice({ chosen, onChoose }: ChoiceProps): ReactElement {
  const [typed, setTyped] = useState("");
  const [name] = useDebouncedValue(typed.trim(), TYPED_MS);
  const [isCreating, setCreating] = useState(false);
  const { data, error } = useQuery({
    queryKey: ["agents", "to connect", name],
    queryFn: async ({ signal }) =>
      valueOf(
        await api.listAgents({ query: { limit: OPTIONS_MAX, ...(name === "" ? {} : { name }) } }, { signal }),
      ),
    placeholderData: keepPreviousData,
  });
  const found = (data?.agents ?? []).filter(({ id, state }) => state !== "archived" && id !== chosen?.id);
  const agents = chosen === null ? found : [chosen, ...found];
  const isLong = typed !== "" || (data?.nextCursor ?? null) !== null;
  return (
    <Card
      title="Agent"
      about="The client spends from this agent’s budget, under its rules."
      actions={
        <Button variant="default" onClick={() => setCreating(true)}>
          New agent
        </Button>
      }
    >
      <Stack>
        {error === null ? null : <Failed error={error} />}
        {isLong ? (
          <TextInput
            aria-label="Find an agent"
            placeholder="Find an agent"
            value={typed}
            onChange={({ currentTarget }) => setTyped(currentTarget.value)}
          />
        ) : null}
        {data !== undefined && agents.length === 0 ? (
          <Text size="sm" c="dimmed">
            {typed === "" ? "You have no agent yet." : "No such agent."}
          </Text>
        ) : null}
        <Radio.Group
          aria-label="Agent"
          value={chosen?.id ?? null}
          onChange={(id) => {
            const agent = agents.find((each) => each.id === id);
            if (agent !== undefined) onChoose(agent, false);
          }}
        >
          <Stack gap="xs">
            {agents.map((agent) => (
              <Radio key={agent.id} value={agent.id} label={<AgentName agent={agent} />} />
            ))}
          </Stack>
        </Radio.Group>
      </Stack>
      {isCreating ? (
        <Drawer opened onClose={() => setCreating(false)} position="right" size="lg" title="New agent">
          <AgentForm
            onCancel={() => setCreating(false)}
            onCreated={({ agent }) => {
              setCreating(false);
              onChoose(agent, true);
            }}
          />
        </Drawer>
      ) : null}
    </Card>
  );
}

const AgentName = ({ agent: { key, name, state } }: { readonly agent: Agent }): ReactElement => (
  <Group gap="xs">
    <Written text={name} />
    {state === "paused" ? <Badge color="yellow">Paused</Badge> : null}
    {key?.kind === "oauth" ? (
      <Text span size="xs" c="dimmed">
        connected: <Written text={key.clientName ?? ""} />
      </Text>
    ) : null}
  </Group>
);
