import { Code, Select, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactElement, useState } from "react";
import { valueOf } from "../../../src/client/client.ts";
import { api } from "../api.ts";
import { Waiting } from "./parts.tsx";
import { Failed } from "./problem.tsx";
import { Block } from "./secret.tsx";

interface ConnectProps {
  readonly agentId: string;
  /** Replaces the placeholder in the texts, if available. */
  readonly apiKey?: string;
}

const GROUPS = [
  ["mcp_client", "Clients"],
  ["framework", "Frameworks"],
] as const;

/** Instructions to connect an agent with each client and framework, and to try a first payment. */
export function Connect({ agentId, apiKey }: ConnectProps): ReactElement {
  const [chosen, setChosen] = useState<string | null>(null);
  const { data, error } = useQuery({
    queryKey: ["agents", agentId, "connect"],
    queryFn: async ({ signal }) => valueOf(await api.connectAgent({ id: agentId }, { signal })),
    staleTime: Infinity,
  });
  if (data === undefined) return error === null ? <Waiting lines={2} /> : <Failed error={error} />;
  const { clients, keyPlaceholder } = data;
  const client =
    clients.find((each) => each.client === chosen) ?? clients.find(({ kind }) => kind === "mcp_client");
  const trial = clients.find(({ kind }) => kind === "trial");
  const shown = [client, trial].filter((each) => each !== undefined);
  return (
    <Stack gap="sm">
      <Select
        aria-label="Client or framework"
        data={GROUPS.map(([kind, group]) => ({
          group,
          items: clients
            .filter((each) => each.kind === kind)
            .map((each) => ({ value: each.client, label: each.name })),
        }))}
        value={client?.client ?? null}
        onChange={setChosen}
        allowDeselect={false}
      />
      {shown.map(({ kind, name, place, remark, text }) => (
        <Stack key={kind} gap="xs">
          <Block
            label={kind === "trial" ? name : place}
            text={apiKey === undefined ? text : text.replaceAll(keyPlaceholder, apiKey)}
          />
          {remark === null ? null : (
            <Text size="xs" c="dimmed">
              {remark}
            </Text>
          )}
        </Stack>
      ))}
      {apiKey === undefined ? (
        <Text size="xs" c="dimmed">
          Put the agent’s key in the place of <Code>{keyPlaceholder}</Code>.
        </Text>
      ) : null}
    </Stack>
  );
}
