import { MultiSelect, SegmentedControl, Stack } from "@mantine/core";
import type { ReactElement } from "react";
import { OPTIONS_MAX, useProjects, useTeams } from "../containers.ts";
import type { Member } from "../words.ts";

/** A binding in a request's form. */
export type Binding = { type: "organization" } | { type: "project" | "team"; ids: string[] };

export const bindingOf = ({ binding: { ids = [], type } }: Member): Binding =>
  type === "organization" ? { type } : { type, ids };

export const WHOLE: Binding = { type: "organization" };

interface BindingPickerProps {
  readonly value: Binding;
  readonly onChange: (value: Binding) => void;
  readonly error?: string | undefined;
}

/** Picker for the part of the organization that a member sees and decides in. */
export function BindingPicker({ error, onChange, value }: BindingPickerProps): ReactElement {
  const { data: projects = [] } = useProjects();
  const { data: teams = [] } = useTeams();
  const projectNames = new Map(projects.map(({ id, name }) => [id, name]));
  const options =
    value.type === "team"
      ? teams.map((team) => ({ ...team, label: `${team.name} (${projectNames.get(team.projectId) ?? ""})` }))
      : projects.map((project) => ({ ...project, label: project.name }));
  return (
    <Stack gap="xs">
      <SegmentedControl
        aria-label="Sees and decides"
        value={value.type}
        onChange={(type) =>
          onChange(type === "project" || type === "team" ? { type, ids: [] } : { type: "organization" })
        }
        data={[
          { value: "organization", label: "Everywhere" },
          { value: "project", label: "In projects" },
          { value: "team", label: "In teams" },
        ]}
      />
      {value.type === "organization" ? null : (
        <MultiSelect
          label={value.type === "project" ? "Projects" : "Teams"}
          data={options.flatMap(({ archivedAt, id, label }) =>
            archivedAt === null ? [{ value: id, label }] : [],
          )}
          value={value.ids}
          error={error}
          searchable
          limit={OPTIONS_MAX}
          maxValues={20}
          onChange={(ids) => onChange({ type: value.type, ids })}
        />
      )}
    </Stack>
  );
}

/** Returns a binding in words; empty for the whole organization. */
export function boundWords(binding: Binding): string {
  if (binding.type === "organization") return "";
  const { length } = binding.ids;
  return `${length} ${binding.type}${length === 1 ? "" : "s"}`;
}
