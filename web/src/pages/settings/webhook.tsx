import { Alert, Badge, Button, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { type ReactElement, useState } from "react";
import { valueOf } from "../../../../src/client/client.ts";
import type { Item, Output } from "../../../../src/client/types.ts";
import { useAction } from "../../action.ts";
import { api } from "../../api.ts";
import { onTheWall } from "../../format.ts";
import { Icon } from "../../icons.tsx";
import { Confirm, useOpened } from "../../parts/confirm.tsx";
import { Card, Fact, Facts, Waiting, Written } from "../../parts/parts.tsx";
import { Failed, Problem } from "../../parts/problem.tsx";
import { Secret } from "../../parts/secret.tsx";
import { Deliveries } from "./deliveries.tsx";
import { ReplayEvents } from "./replay.tsx";
import { WebhookForm } from "./webhook-form.tsx";

type Endpoint = Item<"listWebhooks">;
type OpenDialog = "edit" | "delete" | "rotate" | "replay";

const STALE = [["webhooks"]];

export function WebhookPage(): ReactElement {
  const { id } = useParams({ from: "/app/settings/webhooks/$id" });
  const { data, error } = useQuery({
    queryKey: ["webhooks", id],
    queryFn: async ({ signal }) => valueOf(await api.getWebhook({ id }, { signal })).endpoint,
  });
  if (data === undefined) return error === null ? <Waiting /> : <Failed error={error} />;
  return (
    <Stack>
      <Endpoint endpoint={data} />
      <Deliveries endpoint={data} />
    </Stack>
  );
}

function Endpoint({ endpoint }: { readonly endpoint: Endpoint }): ReactElement {
  const { id } = endpoint;
  const navigate = useNavigate();
  const [dialog, openDialog, close] = useOpened<OpenDialog>();
  const [secret, setSecret] = useState<string | null>(null);
  const [sent, setSent] = useState<Output<"testWebhook"> | null>(null);
  const test = useAction(() => api.testWebhook({ id, body: {} }), { stale: STALE });
  const turn = useAction((isActive: boolean) => api.updateWebhook({ id, body: { isActive } }), {
    stale: STALE,
  });
  const remove = useAction(() => api.deleteWebhook({ id }), { stale: [["webhooks", "list"]] });
  const rotate = useAction(() => api.rotateWebhookSecret({ id }), { stale: STALE });
  const rotated = async (): Promise<void> => {
    const done = await rotate.run();
    if (done === null) return;
    close();
    setSecret(done.secret);
  };
  const removed = async (): Promise<void> => {
    if ((await remove.run()) !== null) await navigate({ to: "/settings/webhooks" });
  };
  return (
    <Card
      title={<Written text={endpoint.name} />}
      actions={
        <>
          <Button variant="default" loading={test.isBusy} onClick={() => void test.run().then(setSent)}>
            Send a test
          </Button>
          <Button variant="default" onClick={() => openDialog("edit")}>
            Edit
          </Button>
          <Button variant="default" onClick={() => openDialog("rotate")}>
            Rotate secret
          </Button>
          <Button variant="default" onClick={() => openDialog("replay")} disabled={!endpoint.isActive}>
            Replay
          </Button>
          <Button variant="default" loading={turn.isBusy} onClick={() => void turn.run(!endpoint.isActive)}>
            {endpoint.isActive ? "Disable" : "Enable again"}
          </Button>
          <Button variant="subtle" color="red" onClick={() => openDialog("delete")}>
            Delete
          </Button>
        </>
      }
    >
      <Stack>
        <Problem text={`${test.problem}${turn.problem}`} />
        {sent === null ? null : <Tested sent={sent} />}
        {endpoint.disabledReason === "consecutive_failures" ? (
          <Alert color="red" variant="light" icon={<Icon name="alert" />}>
            Nothing is sent to it: ten deliveries in a row have failed. Once it works again, enable it, and
            replay what it has missed.
          </Alert>
        ) : null}
        <Facts>
          <Fact label="State">
            <Badge color={endpoint.isActive ? "teal" : "red"}>
              {endpoint.isActive ? "Active" : "Disabled"}
            </Badge>
          </Fact>
          <Fact label="URL">
            <span className="mono">{endpoint.url}</span>
          </Fact>
          <Fact label="Events">
            {endpoint.eventTypes.includes("*") ? "All" : endpoint.eventTypes.join(", ")}
          </Fact>
          <Fact label="Scope">
            {endpoint.scopeType}
            {endpoint.scopeIds.length === 0 ? "" : ` (${endpoint.scopeIds.length})`}
          </Fact>
          {endpoint.secretPreviousExpiresAt === null ? null : (
            <Fact label="Two secrets sign until">{onTheWall(endpoint.secretPreviousExpiresAt)}</Fact>
          )}
        </Facts>
      </Stack>
      {dialog === "edit" ? <WebhookForm endpoint={endpoint} onClose={close} /> : null}
      {dialog === "replay" ? <ReplayEvents endpointId={id} onClose={close} /> : null}
      {dialog === "rotate" ? (
        <Confirm
          title="Rotate the secret?"
          action="Rotate"
          color="indigo"
          isBusy={rotate.isBusy}
          problem={rotate.problem}
          onConfirm={() => void rotated()}
          onClose={close}
        >
          For 24 hours deliveries carry two signatures, one with the new secret and one with the old, so that
          your receiver can change over.
        </Confirm>
      ) : null}
      {dialog === "delete" ? (
        <Confirm
          title={`Delete ${endpoint.name}?`}
          action="Delete"
          isBusy={remove.isBusy}
          problem={remove.problem}
          onConfirm={() => void removed()}
          onClose={close}
        >
          Its secrets are erased, and what is queued for it is dropped.
        </Confirm>
      ) : null}
      {secret === null ? null : (
        <Secret title="The new secret" label="Secret" value={secret} onClose={() => setSecret(null)} />
      )}
    </Card>
  );
}

function Tested({ sent }: { readonly sent: Output<"testWebhook"> }): ReactElement {
  const isGood = sent.failureReason === null;
  return (
    <Alert
      color={isGood ? "teal" : "red"}
      variant="light"
      role="status"
      icon={<Icon name={isGood ? "check" : "alert"} />}
    >
      <Group gap="xs">
        <Text size="sm">
          {sent.httpStatus === null ? "No answer came" : `Answered ${sent.httpStatus}`}
          {sent.responseTimeMs === null ? "" : ` in ${sent.responseTimeMs} ms`}
          {sent.failureReason === null ? "." : `: ${sent.failureReason}`}
        </Text>
      </Group>
    </Alert>
  );
}
