import { Button, Select, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactElement, useCallback, useState } from "react";
import { Drawer } from "../../parts/dialog.tsx";
import { valueOf } from "../../../../src/client/client.ts";
import type { Item } from "../../../../src/client/types.ts";
import { useAction } from "../../action.ts";
import { api } from "../../api.ts";
import { onTheWall } from "../../format.ts";
import { useOpened } from "../../parts/confirm.tsx";
import { More, usePages } from "../../parts/list.tsx";
import { Card, Empty, State, Waiting, When } from "../../parts/parts.tsx";
import { Failed, Problem } from "../../parts/problem.tsx";
import { Table } from "../../parts/table.tsx";
import { Block } from "../../parts/secret.tsx";

type Delivery = Item<"listWebhookDeliveries">;
const STATUSES = ["pending", "succeeded", "failed", "dropped"] as const;

interface DeliveriesProps {
  readonly endpoint: { readonly id: string; readonly isActive: boolean };
}

export function Deliveries({ endpoint }: DeliveriesProps): ReactElement {
  const { id } = endpoint;
  const [status, setStatus] = useState<(typeof STATUSES)[number] | null>(null);
  const filter = status === null ? {} : { status };
  const pages = usePages(["webhooks", id, "deliveries", status], (cursor, options) =>
    api.listWebhookDeliveries({ id, query: { ...filter, ...cursor, limit: 50 } }, options),
  );
  const [opened, open, close] = useOpened<Delivery>();
  const deliveries = pages.data?.pages.flatMap((page) => page.deliveries) ?? [];
  const cells = useCallback((delivery: Delivery) => <Cells delivery={delivery} onOpen={open} />, [open]);
  return (
    <Card
      title="Deliveries"
      actions={
        <>
          <Select
            aria-label="State"
            placeholder="Any state"
            clearable
            data={STATUSES}
            value={status}
            onChange={(value) => setStatus(STATUSES.find((each) => each === value) ?? null)}
          />
          <Button variant="default" loading={pages.isFetching} onClick={() => void pages.refetch()}>
            Refresh
          </Button>
        </>
      }
      flush
    >
      {pages.isPending ? <Waiting /> : null}
      {pages.error === null ? null : <Failed error={pages.error} />}
      {pages.data !== undefined && deliveries.length === 0 ? (
        <Empty icon="webhook" title="No deliveries yet">
          Each event that fits this endpoint shows here, with every attempt. Send a test to see one.
        </Empty>
      ) : null}
      {deliveries.length === 0 ? null : (
        <Table
          items={deliveries}
          keyOf={({ id: deliveryId }) => deliveryId}
          columns={5}
          cells={cells}
          head={
            <>
              <th>Event</th>
              <th>State</th>
              <th>Last answer</th>
              <th>Attempts</th>
              <th>When</th>
            </>
          }
        />
      )}
      <More {...pages} />
      {opened === null ? null : <Detail endpoint={endpoint} delivery={opened} onClose={close} />}
    </Card>
  );
}

interface CellsProps {
  readonly delivery: Delivery;
  readonly onOpen: (delivery: Delivery) => void;
}

const Cells = ({ delivery, onOpen }: CellsProps): ReactElement => (
  <>
    <td className="main">
      <button type="button" className="row-link plain" onClick={() => onOpen(delivery)}>
        {delivery.eventType}
      </button>
      <Text size="xs" c="dimmed" className="mono">
        {delivery.id}
        {delivery.test ? " (test)" : ""}
      </Text>
    </td>
    <td>
      <State of={delivery.status} />
    </td>
    <td>{answerOf(delivery)}</td>
    <td className="away figure">{delivery.attempts.length}</td>
    <td className="away">
      <When iso={delivery.createdAt} />
    </td>
  </>
);

const answerOf = ({ attempts }: Delivery): string => {
  const last = attempts.at(-1);
  if (last === undefined) return "";
  return last.httpStatus === null
    ? (last.failureReason ?? "No answer")
    : `${last.httpStatus}, ${last.responseTimeMs} ms`;
};

interface DetailProps extends DeliveriesProps {
  readonly delivery: Delivery;
  readonly onClose: () => void;
}

function Detail({ delivery: given, endpoint, onClose }: DetailProps): ReactElement {
  const { id } = endpoint;
  const { data, error } = useQuery({
    queryKey: ["webhooks", id, "deliveries", "one", given.id],
    queryFn: async ({ signal }) =>
      valueOf(await api.getWebhookDelivery({ id, deliveryId: given.id }, { signal })),
  });
  const again = useAction(() => api.redeliverWebhook({ id, deliveryId: given.id }), {
    stale: [["webhooks", id, "deliveries"]],
  });
  const delivery = data?.delivery ?? given;
  return (
    <Drawer opened onClose={onClose} position="right" size="lg" title={delivery.eventType}>
      <Stack>
        <Problem text={again.problem} />
        {error === null ? null : <Failed error={error} />}
        <Button
          className="start"
          variant="default"
          loading={again.isBusy}
          disabled={!endpoint.isActive}
          onClick={() => void again.run()}
        >
          Send it again
        </Button>
        {delivery.attempts.map((attempt) => (
          <div key={attempt.number} className="attempt">
            <Text size="sm" fw={550}>
              Attempt {attempt.number}, {onTheWall(attempt.at)}
            </Text>
            <Text size="sm" className="break">
              {attempt.httpStatus === null ? "No answer" : `Answered ${attempt.httpStatus}`} in{" "}
              {attempt.responseTimeMs} ms
              {attempt.failureReason === null ? "" : `: ${attempt.failureReason}`}
            </Text>
            {attempt.responseExcerpt ? (
              <Block label="Response (beginning)" text={attempt.responseExcerpt} />
            ) : null}
          </div>
        ))}
        {delivery.nextAttemptAt === null ? null : (
          <Text size="sm">The next attempt is due at {onTheWall(delivery.nextAttemptAt)}.</Text>
        )}
        {data === undefined ? null : <Block label="Body, as it is signed" text={data.body} />}
      </Stack>
    </Drawer>
  );
}
