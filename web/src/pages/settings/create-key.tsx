import {
  Button,
  Checkbox,
  Group,
  NumberInput,
  Select,
  SegmentedControl,
  Stack,
  TextInput,
} from "@mantine/core";
import { type ReactElement, type SyntheticEvent, useState } from "react";
import { Modal } from "../../parts/dialog.tsx";
import type { Input } from "../../../../src/client/types.ts";
import { useAction } from "../../action.ts";
import { api } from "../../api.ts";
import { OPTIONS_MAX, useProjects, useTeams } from "../../containers.ts";
import { Problem } from "../../parts/problem.tsx";

type Body = Input<"mintOrganizationKey">["body"];
type Scope = Body["scopes"][number];

const SCOPES: readonly { readonly value: Scope; readonly about: string }[] = [
  { value: "agents:read", about: "List and read agents, transactions, approvals" },
  { value: "agents:write", about: "Create, set policies, pause, resume, archive" },
  { value: "projects:read", about: "List and read projects" },
  { value: "projects:write", about: "Create projects, set their budgets and rules" },
  { value: "teams:read", about: "List and read teams" },
  { value: "teams:write", about: "Create teams, set their budgets and rules" },
];

interface CreateKeyProps {
  readonly onCreated: (value: string) => void;
  readonly onClose: () => void;
}

const KINDS = ["organization", "project", "team"] as const;
type Kind = (typeof KINDS)[number];
const isKind = (value: string): value is Kind => KINDS.some((kind) => kind === value);

/** Form for a new key: its permissions, scope and daily limits, all of which are fixed for the key's life. */
export function CreateKey({ onClose, onCreated }: CreateKeyProps): ReactElement {
  const { data: projects = [] } = useProjects();
  const { data: teams = [] } = useTeams();
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<ReadonlySet<Scope>>(new Set());
  const [kind, setKind] = useState<Kind>("organization");
  const [container, setContainer] = useState<string | null>(null);
  const [limit, setLimit] = useState<string | number>(100);
  const create = useAction((body: Body) => api.mintOrganizationKey({ body }), {
    stale: [["organizationKeys"]],
    fields: ["name", "scopes", "dailyCreateLimit", "binding.id"],
  });
  const submit = async (event: SyntheticEvent): Promise<void> => {
    event.preventDefault();
    const binding: Body["binding"] =
      kind === "organization" ? { type: "organization" } : { type: kind, id: container ?? "" };
    const made = await create.run({ name, scopes: [...scopes], binding, dailyCreateLimit: Number(limit) });
    if (made !== null) onCreated(made.key);
  };
  const containers = (kind === "project" ? projects : teams).filter(({ archivedAt }) => archivedAt === null);
  return (
    <Modal opened onClose={onClose} title="Create a key" size="lg">
      <form onSubmit={(event) => void submit(event)} noValidate>
        <Stack>
          <Problem text={create.problem} />
          <TextInput
            label="Name"
            placeholder="Provisioning backend"
            data-autofocus
            value={name}
            error={create.at("name")}
            onChange={({ currentTarget }) => setName(currentTarget.value)}
          />
          <Checkbox.Group
            label="Scopes"
            description="What it may do; they are independent of each other."
            value={[...scopes]}
            error={create.at("scopes")}
            onChange={(values) =>
              setScopes(new Set(SCOPES.map(({ value }) => value).filter((value) => values.includes(value))))
            }
          >
            <div className="fields" data-tight>
              {SCOPES.map(({ about, value }) => (
                <Checkbox key={value} value={value} label={value} description={about} />
              ))}
            </div>
          </Checkbox.Group>
          <Stack gap={6}>
            <SegmentedControl
              aria-label="Bound to"
              value={kind}
              data={[
                { value: "organization", label: "The organization" },
                { value: "project", label: "One project" },
                { value: "team", label: "One team" },
              ]}
              onChange={(value) => {
                if (isKind(value)) setKind(value);
                setContainer(null);
              }}
            />
            {kind === "organization" ? null : (
              <Select
                aria-label={kind === "project" ? "Project" : "Team"}
                placeholder={kind === "project" ? "Choose a project" : "Choose a team"}
                searchable
                limit={OPTIONS_MAX}
                data={containers.map((each) => ({ value: each.id, label: each.name }))}
                value={container}
                onChange={setContainer}
                error={create.at("binding.id")}
              />
            )}
          </Stack>
          <NumberInput
            label="Agents, projects and teams per day"
            description="How many the key may create in a UTC day: 1 to 1,000."
            min={1}
            max={1_000}
            value={limit}
            onChange={setLimit}
            error={create.at("dailyCreateLimit")}
          />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={create.isBusy}>
              Create
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
