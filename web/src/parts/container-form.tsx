import { Button, ColorInput, Group, Stack, Textarea, TextInput } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { type ReactElement, type SyntheticEvent, useState } from "react";
import { Modal } from "./dialog.tsx";
import { newUuid } from "../../../src/client/uuid.ts";
import { changesOf, useAction } from "../action.ts";
import { api } from "../api.ts";
import type { Project, Team } from "../containers.ts";
import { Problem } from "./problem.tsx";

type Kind =
  | { readonly kind: "project"; readonly of?: Project }
  | { readonly kind: "team"; readonly of?: Team; readonly projectId?: string };
type FormProps = Kind & { readonly onClose: () => void };

const SWATCHES = ["#4338ca", "#0f766e", "#b45309", "#be123c", "#1d4ed8", "#6d28d9", "#3f6212", "#475569"];
const STALE = [["projects"], ["teams"], ["budgets"]];

export function ContainerForm(props: FormProps): ReactElement {
  const { kind, of, onClose } = props;
  const navigate = useNavigate();
  const [name, setName] = useState(of?.name ?? "");
  const [description, setDescription] = useState(of?.description ?? "");
  const [color, setColor] = useState(of?.color ?? "");
  const [idempotencyKey] = useState(() => newUuid());
  const body = {
    name,
    description: description.trim() === "" ? null : description,
    color: color === "" ? null : color,
  };
  const [opened] = useState(body);
  const changes = changesOf(opened, body);
  const options = { stale: STALE, fields: ["name", "description", "color"] };
  const createProject = useAction(() => api.createProject({ body: { ...body, idempotencyKey } }), options);
  const createTeam = useAction(
    (projectId: string) => api.createTeam({ body: { ...body, projectId, idempotencyKey } }),
    options,
  );
  const updateProject = useAction((id: string) => api.updateProject({ id, body: changes }), options);
  const updateTeam = useAction((id: string) => api.updateTeam({ id, body: changes }), options);
  const actions = [createProject, createTeam, updateProject, updateTeam];
  const at = (path: string): string | undefined => actions.map((action) => action.at(path)).find(Boolean);

  const submit = async (event: SyntheticEvent): Promise<void> => {
    event.preventDefault();
    if (of !== undefined) {
      const changed = kind === "project" ? await updateProject.run(of.id) : await updateTeam.run(of.id);
      if (changed !== null) onClose();
    } else if (props.kind === "project") {
      const made = await createProject.run();
      if (made !== null) void navigate({ to: "/projects/$id", params: { id: made.project.id } });
    } else {
      const made = await createTeam.run(props.projectId ?? "");
      if (made !== null) void navigate({ to: "/teams/$id", params: { id: made.team.id } });
    }
  };
  return (
    <Modal opened onClose={onClose} title={of === undefined ? `New ${kind}` : `Edit the ${kind}`}>
      <form onSubmit={(event) => void submit(event)} noValidate>
        <Stack>
          <Problem text={actions.map(({ problem }) => problem).join("")} />
          <TextInput
            label="Name"
            data-autofocus
            value={name}
            error={at("name")}
            onChange={({ currentTarget }) => setName(currentTarget.value)}
          />
          <Textarea
            label="Description"
            rows={2}
            value={description}
            error={at("description")}
            onChange={({ currentTarget }) => setDescription(currentTarget.value)}
          />
          <ColorInput
            label="Color"
            swatches={SWATCHES}
            value={color}
            error={at("color")}
            onChange={setColor}
          />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={actions.some(({ isBusy }) => isBusy)}>
              {of === undefined ? "Create" : "Save"}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
