import {
  Alert,
  Button,
  Collapse,
  Group,
  MultiSelect,
  Radio,
  Select,
  Stack,
  Text,
  TextInput,
} from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useNavigate } from "@tanstack/react-router";
import { type ReactElement, type SyntheticEvent, useRef, useState } from "react";
import { Drawer } from "../parts/dialog.tsx";
import { newUuid } from "../../../src/client/uuid.ts";
import type { Output } from "../../../src/client/types.ts";
import { useAction } from "../action.ts";
import { api } from "../api.ts";
import { OPTIONS_MAX, useProjects, useTeams } from "../containers.ts";
import { Icon } from "../icons.tsx";
import { LABEL_FIELDS, LabelFields, NO_LABELS, sentLabelsOf } from "../parts/agent-labels.tsx";
import { AmountInput } from "../parts/amount.tsx";
import { Connect } from "../parts/connect.tsx";
import { PolicyFields } from "../parts/policy-fields.tsx";
import { Problem } from "../parts/problem.tsx";
import { Secret } from "../parts/secret.tsx";
import { isTool, type Tool, TOOLS } from "../tools.ts";
import { EMPTY_POLICY, type PolicyField, readPolicy } from "../policy.ts";

type Created = Output<"createAgent">;

const FIELDS = ["name", "teamId", "budgetCents", ...LABEL_FIELDS];

/** Form for a new agent, then its key, shown once. */
export function CreateAgent({ onClose }: { readonly onClose: () => void }): ReactElement {
  const navigate = useNavigate();
  const [created, setCreated] = useState<Created | null>(null);
  if (created !== null)
    return (
      <Made
        created={created}
        onClose={() => void navigate({ to: "/agents/$id", params: { id: created.agent.id } })}
      />
    );
  return (
    <Drawer opened onClose={onClose} position="right" size="lg" title="New agent">
      <AgentForm onCreated={setCreated} onCancel={onClose} />
    </Drawer>
  );
}

function Made({
  created,
  onClose,
}: {
  readonly created: Created;
  readonly onClose: () => void;
}): ReactElement {
  const { agent, apiKey } = created;
  if (apiKey === null) {
    // The response to the first attempt was lost, and a person gets a key only once.
    return (
      <Drawer opened onClose={onClose} position="right" size="lg" title={`${agent.name} was created`}>
        <Stack>
          <Alert color="yellow" icon={<Icon name="key" />}>
            The line broke while its key was on the way, and a key is shown once. Revoke it on the agent’s
            page, and create another one.
          </Alert>
          <Button onClick={onClose}>To the agent</Button>
        </Stack>
      </Drawer>
    );
  }
  return (
    <Secret title={`${agent.name} is ready`} label="API key" value={apiKey} onClose={onClose}>
      <Text size="sm" fw={550}>
        Connect it
      </Text>
      <Connect agentId={agent.id} apiKey={apiKey} />
    </Secret>
  );
}

interface FormProps {
  readonly onCreated: (created: Created) => void;
  readonly onCancel: () => void;
}

export function AgentForm({ onCancel, onCreated }: FormProps): ReactElement {
  const { data: teams = [] } = useTeams();
  const { data: projects = [] } = useProjects();
  const [name, setName] = useState("");
  const [labels, setLabels] = useState(NO_LABELS);
  const [chosenTeam, setTeam] = useState<string | null>(null);
  const [policy, setPolicy] = useState(EMPTY_POLICY);
  const [asks, setAsks] = useState<string>("above");
  const [tools, setTools] = useState<readonly Tool[]>([]);
  const [errors, setErrors] = useState<Partial<Record<PolicyField | "name" | "teamId", string>>>({});
  const [isMore, more] = useDisclosure(false);
  const [idempotencyKey] = useState(() => newUuid());
  const first = useRef<HTMLInputElement>(null);

  const live = teams.filter(({ archivedAt }) => archivedAt === null);
  const teamId = chosenTeam ?? (live.length === 1 ? (live[0]?.id ?? null) : null);
  const groups = projects.map((project) => ({
    group: project.name,
    items: live
      .filter((team) => team.projectId === project.id)
      .map((team) => ({ value: team.id, label: team.name })),
  }));
  const create = useAction(api.createAgent, { stale: [["agents"], ["budgets"]], fields: FIELDS });
  const submit = async (event: SyntheticEvent): Promise<void> => {
    event.preventDefault();
    const isThresholdMissing = asks === "above" && policy.autoApprovalThresholdCents.trim() === "";
    const read = readPolicy(asks === "never" ? { ...policy, autoApprovalThresholdCents: "" } : policy);
    const missing = {
      ...(isThresholdMissing
        ? { autoApprovalThresholdCents: "An amount is needed; 0 asks for every payment." }
        : {}),
      ...(name.trim() === "" ? { name: "Every agent has a name." } : {}),
      ...(teamId === null ? { teamId: "Choose the team whose budget it draws from." } : {}),
    };
    setErrors({ ...(read.ok ? {} : read.errors), ...missing });
    if (!read.ok || teamId === null || name.trim() === "" || isThresholdMissing) return;
    const body = {
      name,
      teamId,
      ...read.values,
      ...sentLabelsOf(labels),
      ...(tools.length === 0 ? {} : { scopes: tools }),
      idempotencyKey,
    };
    const made = await create.run({ body });
    if (made !== null) onCreated(made);
  };
  return (
    <form onSubmit={(event) => void submit(event)} noValidate>
      <Stack>
        <Problem text={create.problem} />
        <TextInput
          ref={first}
          label="Name"
          placeholder="Research assistant"
          data-autofocus
          value={name}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
          error={errors.name ?? create.at("name")}
        />
        <Select
          label="Team"
          searchable
          limit={OPTIONS_MAX}
          data={groups}
          value={teamId}
          onChange={setTeam}
          error={errors.teamId ?? create.at("teamId")}
        />
        <LabelFields value={labels} onChange={setLabels} at={create.at} />
        <PolicyFields
          value={policy}
          onChange={setPolicy}
          errors={errors}
          without="autoApprovalThresholdCents"
        />
        <Radio.Group label="Payments that a person approves" value={asks} onChange={setAsks}>
          <Stack gap="xs" mt={4}>
            <Radio value="above" label="Ask above an amount" />
            {asks === "above" ? (
              <AmountInput
                label="Require approval above"
                value={policy.autoApprovalThresholdCents}
                error={errors.autoApprovalThresholdCents}
                onChange={(typed) => setPolicy({ ...policy, autoApprovalThresholdCents: typed })}
              />
            ) : null}
            <Radio value="never" label="Never ask: it may spend its whole budget by itself" />
          </Stack>
        </Radio.Group>
        <Button
          variant="subtle"
          size="compact-sm"
          onClick={more.toggle}
          aria-expanded={isMore}
          leftSection={<Icon name={isMore ? "down" : "right"} size={15} />}
          className="start"
        >
          Permissions of its key
        </Button>
        <Collapse expanded={isMore}>
          <MultiSelect
            label="Tools"
            description="None chosen: all of them."
            data={TOOLS}
            value={[...tools]}
            onChange={(values) => setTools(values.filter(isTool))}
          />
        </Collapse>
        <Group justify="flex-end">
          <Button variant="default" onClick={onCancel}>
            Cancel
          </Button>
          <Button type="submit" loading={create.isBusy}>
            Create
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
