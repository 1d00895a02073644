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
  /** Where it is at hand: goes into the configuration in its place. */
  readonly apiKey?: string;
}

/** How an agent's MCP client is connected, for each of those that people use. */
export function Connect({ agentId, apiKey }: ConnectProps): ReactElement {
  const [chosen, setChosen] = useState<string | null>(null);
  const { data, error } = useQuery({
    queryKey: ["agents", agentId, "connect"],
    queryFn: async ({ signal }) => valueOf(await api.connectAgent({ id: agentId }, { signal })),
    staleTime: Infinity,
  });
  if (data === undefined) return error === null ? <Waiting lines={2} /> : <Failed error={error} />;
  const client = data.clients.find((each) => each.client === chosen) ?? data.clients[0];
  if (client === undefined) return <Code>{data.mcpUrl}</Code>;
  const text = apiKey === undefined ? client.text : client.text.replaceAll(data.keyPlaceholder, apiKey);
  return (
    <Stack gap="sm">
      <Select
        aria-label="MCP client"
        data={data.clients.map((each) => ({ value: each.client, label: each.name }))}
        value={client.client}
        onChange={setChosen}
        allowDeselect={false}
      />
      <Block label={client.place} text={text} />
      {client.remark === null ? null : (
        <Text size="xs" c="dimmed">
          {client.remark}
        </Text>
      )}
      {apiKey === undefined ? (
        <Text size="xs" c="dimmed">
          Put the agent’s key in the place of <Code>{data.keyPlaceholder}</Code>.
        </Text>
      ) : null}
    </Stack>
  );
}
