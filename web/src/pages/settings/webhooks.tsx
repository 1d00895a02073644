import { Badge, Button, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { type ReactElement, useState } from "react";
import type { Item } from "../../../../src/client/types.ts";
import { api } from "../../api.ts";
import { Icon } from "../../icons.tsx";
import { More, usePages } from "../../parts/list.tsx";
import { Card, Empty, Waiting, Written } from "../../parts/parts.tsx";
import { Failed } from "../../parts/problem.tsx";
import { Secret } from "../../parts/secret.tsx";
import { Table } from "../../parts/table.tsx";
import { WebhookForm } from "./webhook-form.tsx";

const cellsOf = (each: Item<"listWebhooks">): ReactElement => (
  <>
    <td className="main">
      <Link to="/settings/webhooks/$id" params={{ id: each.id }} className="row-link">
        <Written text={each.name} />
      </Link>
      <Text size="xs" c="dimmed" className="break">
        <Written text={each.url} />
      </Text>
    </td>
    <td>
      <Badge color={each.isActive ? "teal" : "red"}>{each.isActive ? "Active" : "Disabled"}</Badge>
    </td>
    <td className="wide">{each.eventTypes.includes("*") ? "All" : each.eventTypes.join(", ")}</td>
    <td className="away">{each.scopeType}</td>
  </>
);

export function Webhooks(): ReactElement {
  const pages = usePages(["webhooks", "list"], (cursor, options) =>
    api.listWebhooks({ query: { ...cursor, limit: 50 } }, options),
  );
  const [isCreating, setCreating] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  const webhooks = pages.data?.pages.flatMap((page) => page.webhooks) ?? [];
  const create = (
    <Button leftSection={<Icon name="plus" />} onClick={() => setCreating(true)}>
      Add an endpoint
    </Button>
  );
  return (
    <Card title="Webhooks" about="Signed events, pushed to your own HTTPS endpoints." actions={create} flush>
      {pages.isPending ? <Waiting lines={3} /> : null}
      {pages.error === null ? null : <Failed error={pages.error} />}
      {pages.data !== undefined && webhooks.length === 0 ? (
        <Empty icon="webhook" title="No endpoints yet">
          Get notified when a payment settles or is denied, when an approval is requested, and when an agent
          changes.
        </Empty>
      ) : null}
      {webhooks.length === 0 ? null : (
        <Table
          items={webhooks}
          keyOf={({ id }) => id}
          columns={4}
          cells={cellsOf}
          head={
            <>
              <th>Endpoint</th>
              <th>State</th>
              <th>Events</th>
              <th>Scope</th>
            </>
          }
        />
      )}
      <More {...pages} />
      {isCreating ? (
        <WebhookForm
          onClose={() => setCreating(false)}
          onCreated={(value) => {
            setCreating(false);
            setSecret(value);
          }}
        />
      ) : null}
      {secret === null ? null : (
        <Secret title="The signing secret" label="Secret" value={secret} onClose={() => setSecret(null)} />
      )}
    </Card>
  );
}
