import { Alert, Button, Modal, Stack, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { type ReactElement, useCallback, useState } from "react";
import { addressOfFile } from "../../../../src/client/client.ts";
import type { Item, Output } from "../../../../src/client/types.ts";
import { useAction } from "../../action.ts";
import { api } from "../../api.ts";
import { number, onTheWall } from "../../format.ts";
import { Icon } from "../../icons.tsx";
import { useOpened } from "../../parts/confirm.tsx";
import { More, usePages } from "../../parts/list.tsx";
import { Card, Empty, Fact, Facts, Waiting, When, Written } from "../../parts/parts.tsx";
import { Failed, Problem } from "../../parts/problem.tsx";
import { Table } from "../../parts/table.tsx";
import { Block } from "../../parts/secret.tsx";

type Entry = Item<"listAuditLog">;

const NAME = /^[A-Za-z0-9_-]{1,100}$/;

/** `Update agent budget policy` of `updateAgentBudgetPolicy`. */
const actionOf = (action: string): string => {
  const words = action
    .replaceAll(/([A-Z])/g, " $1")
    .replaceAll("_", " ")
    .toLowerCase()
    .trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
};

const actorOf = ({ actor }: Entry): string =>
  actor.name ??
  { user: "A person", organization_key: "An organization key", agent: "An agent", system: "The service" }[
    actor.type
  ];

/** Every write and every decision, in a chain that can be checked. */
export function AuditLog(): ReactElement {
  const [actor, setActor] = useState("");
  const [resource, setResource] = useState("");
  const [action, setAction] = useState("");
  const [typed] = useDebouncedValue({ actor, resource, action }, 300);
  const filters = Object.fromEntries(Object.entries(typed).filter(([, value]) => NAME.test(value)));
  const pages = usePages(["audit", filters], (cursor, options) =>
    api.listAuditLog({ query: { ...filters, ...cursor, limit: 50 } }, options),
  );
  const [opened, open, close] = useOpened<Entry>();
  const [isChecking, setChecking] = useState(false);
  const entries = pages.data?.pages.flatMap((page) => page.entries) ?? [];
  const cells = useCallback((entry: Entry) => <Cells entry={entry} onOpen={open} />, [open]);
  return (
    <Card
      title="Audit log"
      about="Every write, including refused ones, and every payment decision. Any later change of an entry is detected."
      actions={
        <>
          <Button variant="default" leftSection={<Icon name="shield" />} onClick={() => setChecking(true)}>
            Verify
          </Button>
          <Button
            component="a"
            href={addressOfFile("exportAuditLog", filters)}
            download
            variant="default"
            leftSection={<Icon name="download" />}
          >
            Export
          </Button>
        </>
      }
      flush
    >
      <div className="filters pad">
        <Filter label="Action" placeholder="updateAgentBudgetPolicy" value={action} onChange={setAction} />
        <Filter label="Who (id)" placeholder="Any" value={actor} onChange={setActor} />
        <Filter label="On what (id)" placeholder="Any" value={resource} onChange={setResource} />
      </div>
      {pages.isPending ? <Waiting lines={8} /> : null}
      {pages.error === null ? null : <Failed error={pages.error} />}
      {pages.data !== undefined && entries.length === 0 ? (
        <Empty icon="log" title="No entries match">
          Nothing fits these filters.
        </Empty>
      ) : null}
      {entries.length === 0 ? null : (
        <Table
          items={entries}
          keyOf={({ sequence }) => sequence}
          columns={5}
          cells={cells}
          head={
            <>
              <th>What</th>
              <th>Who</th>
              <th>Result</th>
              <th>When</th>
              <th className="right">No.</th>
            </>
          }
        />
      )}
      <More {...pages} />
      {opened === null ? null : <Detail entry={opened} onClose={close} />}
      {isChecking ? <Verification onClose={() => setChecking(false)} /> : null}
    </Card>
  );
}

interface CellsProps {
  readonly entry: Entry;
  readonly onOpen: (entry: Entry) => void;
}

const Cells = ({ entry, onOpen }: CellsProps): ReactElement => (
  <>
    <td className="main">
      <button type="button" className="row-link plain" onClick={() => onOpen(entry)}>
        {actionOf(entry.action)}
      </button>
      <Text size="xs" c="dimmed" className="mono break">
        {entry.resource.type} {entry.resource.id}
      </Text>
    </td>
    <td>
      <Written text={actorOf(entry)} />
    </td>
    <td className="away">{entry.result.code ?? entry.result.status ?? "Done"}</td>
    <td>
      <When iso={entry.at} />
    </td>
    <td className="right figure away">{entry.sequence}</td>
  </>
);

interface FilterProps {
  readonly label: string;
  readonly placeholder: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

const Filter = ({ label, onChange, placeholder, value }: FilterProps): ReactElement => (
  <TextInput
    label={label}
    placeholder={placeholder}
    value={value}
    error={value === "" || NAME.test(value) ? undefined : "Letters, digits, - and _"}
    onChange={({ currentTarget }) => onChange(currentTarget.value.trim())}
  />
);

function Detail({ entry, onClose }: { readonly entry: Entry; readonly onClose: () => void }): ReactElement {
  const kept = [
    ["Before", entry.before],
    ["After", entry.after],
    ["Decision", entry.decision],
  ] as const;
  return (
    <Modal opened onClose={onClose} title={actionOf(entry.action)} size="lg">
      <Stack>
        <Facts>
          <Fact label="When">{onTheWall(entry.at)}</Fact>
          <Fact label="Who">
            <Written text={actorOf(entry)} /> <span className="mono muted">{entry.actor.id}</span>
          </Fact>
          <Fact label="On what">
            {entry.resource.type} <span className="mono muted">{entry.resource.id}</span>
          </Fact>
          <Fact label="From where">
            {entry.from === null
              ? "The service"
              : `${entry.from.via} (${entry.from.address ?? entry.from.surface})`}
          </Fact>
          <Fact label="Result">
            {[entry.result.status, entry.result.code].filter(Boolean).join(" ") || "Done"}
          </Fact>
          <Fact label="Hash">
            <span className="mono">{entry.hash}</span>
          </Fact>
        </Facts>
        {kept.map(([label, value]) =>
          value === null || value === undefined ? null : (
            <Block key={label} label={label} text={JSON.stringify(value, null, 2)} />
          ),
        )}
      </Stack>
    </Modal>
  );
}

/** Walks the chain as far as it goes; what the service can't see by itself is checked beside it. */
function Verification({ onClose }: { readonly onClose: () => void }): ReactElement {
  const [done, setDone] = useState<Output<"verifyAuditLog"> | null>(null);
  const walk = useAction((after: number) => api.verifyAuditLog({ query: { after } }));
  const run = async (): Promise<void> => {
    let after = 0;
    for (;;) {
      const found = await walk.run(after);
      setDone(found);
      if (found === null || found.broken !== null || found.verifiedTo >= found.lastSequence) return;
      after = found.verifiedTo;
    }
  };
  return (
    <Modal opened onClose={onClose} title="Verify the log" size="lg">
      <Stack>
        <Text size="sm">
          Each entry holds the hash of the one before it, and is sealed with the service’s own key.
        </Text>
        <Problem text={walk.problem} />
        {done === null ? null : <Verdict found={done} />}
        <Button className="start" loading={walk.isBusy} onClick={() => void run()}>
          Verify all entries
        </Button>
        <Text size="sm" c="dimmed">
          Whether its end was cut off, only anchors tell, which are kept outside of the database. Whoever
          operates the service holds the log against them:
        </Text>
        <Block label="In a shell, beside the service" text="npm run --silent admin -- verify-audit-log" />
      </Stack>
    </Modal>
  );
}

function Verdict({ found }: { readonly found: Output<"verifyAuditLog"> }): ReactElement {
  const { broken, lastSequence, verifiedTo } = found;
  if (broken !== null) {
    return (
      <Alert
        role="alert"
        color="red"
        variant="light"
        icon={<Icon name="alert" />}
        title={`Broken at no. ${broken.sequence}`}
      >
        {broken.detail}
      </Alert>
    );
  }
  return (
    <Alert role="status" color="teal" variant="light" icon={<Icon name="check" />}>
      {verifiedTo >= lastSequence
        ? `All ${number(lastSequence)} entries are as they were written.`
        : `${number(verifiedTo)} of ${number(lastSequence)} entries so far…`}
    </Alert>
  );
}
