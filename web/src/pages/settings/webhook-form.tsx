import { Button, Group, MultiSelect, SegmentedControl, Stack, TextInput } from "@mantine/core";
import { type ReactElement, type SyntheticEvent, useState } from "react";
import { Modal } from "../../parts/dialog.tsx";
import type { Input, Item } from "../../../../src/client/types.ts";
import { changesOf, useAction } from "../../action.ts";
import { api } from "../../api.ts";
import { OPTIONS_MAX, useProjects, useTeams } from "../../containers.ts";
import { AgentsSelect } from "../../parts/agent-select.tsx";
import { Problem } from "../../parts/problem.tsx";

type Endpoint = Item<"listWebhooks">;
type EventType = Exclude<Input<"createWebhook">["body"]["eventTypes"][number], "*">;

/** Descriptions of events. The type requires one for every event of the contract. */
const EVENTS: Readonly<Record<EventType, string>> = {
  "transaction.completed": "A payment settles",
  "transaction.denied": "A payment is denied",
  "transaction.failed": "A payment fails, or is never charged",
  "transaction.refunded": "A merchant gives money back",
  "transaction.reversed": "All of a payment has come back",
  "transaction.disputed": "A payment is disputed",
  "budget.threshold_reached": "80 or 100 % of a limit is used",
  "transaction.limit_breached": "A network charges above a limit",
  "authorization.approved": "A network's request is approved",
  "authorization.declined": "A network's request is declined",
  "approval.requested": "A payment needs a person",
  "approval.completed": "A person has decided",
  "approval.expired": "Nobody decided in time",
  "approval.cancelled": "A payment on hold is cancelled",
  "agent.created": "An agent is created",
  "agent.paused": "An agent is paused",
  "agent.resumed": "An agent is resumed",
  "agent.archived": "An agent is archived",
  "funding.deposited": "A deposit reaches the treasury",
  "wallet.funded": "An agent's wallet gets money",
  "billing.payment_failed": "A subscription payment fails",
};

const isEvent = (value: string): value is EventType => value in EVENTS;
const SCOPES = ["organization", "project", "team", "agent"] as const;
type Scope = (typeof SCOPES)[number];

interface FormProps {
  readonly endpoint?: Endpoint;
  readonly onClose: () => void;
  /** Called with the new endpoint's secret. */
  readonly onCreated?: (secret: string) => void;
}

export function WebhookForm({ endpoint, onClose, onCreated }: FormProps): ReactElement {
  const { data: projects = [] } = useProjects();
  const { data: teams = [] } = useTeams();
  const [name, setName] = useState(endpoint?.name ?? "");
  const [url, setUrl] = useState(endpoint?.url ?? "https://");
  const [types, setTypes] = useState<readonly EventType[]>(() =>
    (endpoint?.eventTypes ?? []).filter(isEvent),
  );
  const [scopeType, setScopeType] = useState<Scope>(endpoint?.scopeType ?? "organization");
  const [scopeIds, setScopeIds] = useState<readonly string[]>(endpoint?.scopeIds ?? []);
  const options = { stale: [["webhooks"]], fields: ["name", "url", "eventTypes", "scopeIds"] };
  const body = { name, url, eventTypes: types.length === 0 ? (["*"] as const) : types, scopeType, scopeIds };
  const [opened] = useState(body);
  const changes = changesOf(opened, body);
  // Ids belong to a type of scope, so the two are sent together.
  const changedScope =
    changes.scopeType === undefined && changes.scopeIds === undefined ? {} : { scopeType, scopeIds };
  const create = useAction(() => api.createWebhook({ body }), options);
  const update = useAction(
    (id: string) => api.updateWebhook({ id, body: { ...changes, ...changedScope } }),
    options,
  );
  const action = endpoint === undefined ? create : update;
  const submit = async (event: SyntheticEvent): Promise<void> => {
    event.preventDefault();
    if (endpoint !== undefined) {
      if ((await update.run(endpoint.id)) !== null) onClose();
      return;
    }
    const made = await create.run();
    if (made !== null) onCreated?.(made.secret);
  };
  const containers = scopeType === "project" ? projects : teams;
  return (
    <Modal
      opened
      onClose={onClose}
      title={endpoint === undefined ? "Add an endpoint" : "Change the endpoint"}
      size="lg"
    >
      <form onSubmit={(event) => void submit(event)} noValidate>
        <Stack>
          <Problem text={action.problem} />
          <TextInput
            label="Name"
            data-autofocus
            value={name}
            error={action.at("name")}
            onChange={({ currentTarget }) => setName(currentTarget.value)}
          />
          <TextInput
            label="URL"
            description="Public, https, on port 443 or 8443."
            inputMode="url"
            value={url}
            error={action.at("url")}
            onChange={({ currentTarget }) => setUrl(currentTarget.value)}
          />
          <MultiSelect
            label="Events"
            description="None chosen: all of them, later ones too."
            data={Object.entries(EVENTS).map(([value, label]) => ({ value, label: `${label} (${value})` }))}
            value={[...types]}
            error={action.at("eventTypes")}
            onChange={(values) => setTypes(values.filter(isEvent))}
          />
          <Stack gap={6}>
            <SegmentedControl
              aria-label="Scope"
              value={scopeType}
              data={[
                { value: "organization", label: "Everything" },
                { value: "project", label: "Projects" },
                { value: "team", label: "Teams" },
                { value: "agent", label: "Agents" },
              ]}
              onChange={(value) => {
                setScopeType(SCOPES.find((scope) => scope === value) ?? "organization");
                setScopeIds([]);
              }}
            />
            {scopeType === "agent" ? (
              <AgentsSelect value={scopeIds} onChange={setScopeIds} error={action.at("scopeIds")} />
            ) : null}
            {scopeType === "organization" || scopeType === "agent" ? null : (
              <MultiSelect
                aria-label={scopeType === "project" ? "Projects" : "Teams"}
                placeholder={scopeType === "project" ? "Choose projects" : "Choose teams"}
                searchable
                limit={OPTIONS_MAX}
                data={containers.map((each) => ({ value: each.id, label: each.name }))}
                value={[...scopeIds]}
                onChange={setScopeIds}
                error={action.at("scopeIds")}
              />
            )}
          </Stack>
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={action.isBusy}>
              {endpoint === undefined ? "Add" : "Save"}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
