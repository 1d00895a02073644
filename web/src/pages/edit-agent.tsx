import { Button, Group, Stack, TextInput } from "@mantine/core";
import { type ReactElement, type SyntheticEvent, useState } from "react";
import { Modal } from "../parts/dialog.tsx";
import { changesOf, useAction } from "../action.ts";
import { api } from "../api.ts";
import { LABEL_FIELDS, LabelFields, sentLabelsOf, typedLabelsOf } from "../parts/agent-labels.tsx";
import { Problem } from "../parts/problem.tsx";
import type { Agent } from "../words.ts";

export function EditAgent({
  agent,
  onClose,
}: {
  readonly agent: Agent;
  readonly onClose: () => void;
}): ReactElement {
  const [name, setName] = useState(agent.name);
  const [labels, setLabels] = useState(() => typedLabelsOf(agent));
  const typed = { name, ...sentLabelsOf(labels) };
  const [opened] = useState(typed);
  const change = useAction(() => api.updateAgent({ id: agent.id, body: changesOf(opened, typed) }), {
    stale: [["agents"]],
    fields: ["name", ...LABEL_FIELDS],
  });
  const submit = async (event: SyntheticEvent): Promise<void> => {
    event.preventDefault();
    if ((await change.run()) !== null) onClose();
  };
  return (
    <Modal opened onClose={onClose} title="Edit the agent">
      <form onSubmit={(event) => void submit(event)} noValidate>
        <Stack>
          <Problem text={change.problem} />
          <TextInput
            label="Name"
            value={name}
            onChange={({ currentTarget }) => setName(currentTarget.value)}
            error={change.at("name")}
          />
          <LabelFields value={labels} onChange={setLabels} at={change.at} />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={change.isBusy}>
              Save
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
