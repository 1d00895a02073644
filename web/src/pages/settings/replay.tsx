import { Button, Group, Select, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactElement, useState } from "react";
import { Modal } from "../../parts/dialog.tsx";
import { valueOf } from "../../../../src/client/client.ts";
import { useAction } from "../../action.ts";
import { api } from "../../api.ts";
import { number } from "../../format.ts";
import { Problem } from "../../parts/problem.tsx";

const HOUR_MS = 3_600_000;
const SINCE = [
  { value: "1", label: "The last hour" },
  { value: "24", label: "The last day" },
  { value: "168", label: "The last 7 days" },
  { value: "720", label: "The last 30 days" },
] as const;

const STATES = {
  running: "Still looking",
  done: "Done",
  limited: "As many as one replay may queue; begin another one for the rest",
  stopped: "Stopped, since the endpoint was disabled",
} as const;

const POLL_INTERVAL_MS = 2_000;

interface ReplayProps {
  readonly endpointId: string;
  readonly onClose: () => void;
}

export function ReplayEvents({ endpointId: id, onClose }: ReplayProps): ReactElement {
  const [hours, setHours] = useState<string | null>("24");
  const last = useQuery({
    queryKey: ["webhooks", id, "replay"],
    queryFn: async ({ signal }) => valueOf(await api.getWebhookReplay({ id }, { signal })).replay,
    refetchInterval: ({ state }) => (state.data?.state === "running" ? POLL_INTERVAL_MS : false),
  });
  const replay = useAction(
    () =>
      api.replayWebhook({
        id,
        body: { since: new Date(Date.now() - Number(hours) * HOUR_MS).toISOString() },
      }),
    { stale: [["webhooks", id]] },
  );
  return (
    <Modal opened onClose={onClose} title="Replay missed events">
      <Stack>
        <Text size="sm">
          Events that fit this endpoint and have not arrived are queued again, under their own ids.
        </Text>
        <Problem text={replay.problem} />
        <Select label="Since" data={SINCE} value={hours} onChange={setHours} allowDeselect={false} />
        {last.data ? (
          <Text size="sm" c="dimmed" role="status">
            The last replay: {STATES[last.data.state]}. {number(last.data.queued)} queued of{" "}
            {number(last.data.examined)} events.
          </Text>
        ) : null}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Close
          </Button>
          <Button loading={replay.isBusy} onClick={() => void replay.run()}>
            Replay
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
