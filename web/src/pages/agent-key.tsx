import { Button, Group, Stack, Text } from "@mantine/core";
import { type ReactElement, useState } from "react";
import { useAction } from "../action.ts";
import { api } from "../api.ts";
import { Icon } from "../icons.tsx";
import { Confirm } from "../parts/confirm.tsx";
import { Connect } from "../parts/connect.tsx";
import { Card, Fact, Facts, State, When, Written } from "../parts/parts.tsx";
import { Problem } from "../parts/problem.tsx";
import { Secret } from "../parts/secret.tsx";
import { useMay } from "../session.tsx";
import type { Agent } from "../words.ts";

/** An agent's only key, shown when it is created and never again. */
export function AgentKey({ agent }: { readonly agent: Agent }): ReactElement {
  const { id, key } = agent;
  const isAdmin = useMay("admin");
  const stale = [["agents"]];
  const [created, setCreated] = useState<string | null>(null);
  const [isRevoking, setRevoking] = useState(false);
  const create = useAction(() => api.mintAgentKey({ id }), { stale });
  const revoke = useAction(() => api.revokeAgentKey({ id }), { stale });
  const isActive = key?.status === "active";
  return (
    <Card
      title="API key"
      about="The only thing that the agent holds: a key, or a client that is connected by URL."
    >
      <Stack>
        {key === null ? (
          <Text size="sm" c="dimmed">
            {agent.state === "archived"
              ? "Revoked when the agent was archived."
              : "It has no key: it can’t pay."}
          </Text>
        ) : (
          <Facts>
            <Fact label={key.kind === "oauth" ? "Connected client" : "Key"}>
              <Group gap="xs">
                {key.kind === "oauth" ? (
                  <Written text={key.clientName ?? ""} />
                ) : (
                  <span className="mono">…{key.last4}</span>
                )}
                <State of={key.status} />
              </Group>
            </Fact>
            <Fact label="Created">
              <When iso={key.createdAt} />
            </Fact>
            <Fact label="Last used">
              <When iso={key.lastUsedAt} />
            </Fact>
          </Facts>
        )}
        <Problem text={create.problem} />
        {agent.state === "archived" || !isAdmin ? null : (
          <Group>
            {isActive ? (
              <Button variant="default" leftSection={<Icon name="close" />} onClick={() => setRevoking(true)}>
                Revoke key
              </Button>
            ) : (
              <Button
                leftSection={<Icon name="key" />}
                loading={create.isBusy}
                onClick={() => void create.run().then((made) => setCreated(made?.apiKey ?? null))}
              >
                Create a key
              </Button>
            )}
          </Group>
        )}
      </Stack>
      {isRevoking ? (
        <Confirm
          title="Revoke the key?"
          action="Revoke"
          isBusy={revoke.isBusy}
          problem={revoke.problem}
          onConfirm={() => void revoke.run().then((done) => done !== null && setRevoking(false))}
          onClose={() => setRevoking(false)}
        >
          The agent’s next request is refused. It pays again once you have created another key and given it to
          it.
        </Confirm>
      ) : null}
      {created === null ? null : (
        <Secret title="The new key" label="API key" value={created} onClose={() => setCreated(null)}>
          <Connect agentId={id} apiKey={created} />
        </Secret>
      )}
    </Card>
  );
}
