import { Button } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactElement, useCallback, useMemo, useState } from "react";
import { addressOfFile } from "../../../../src/client/client.ts";
import { type AuditEntry, entryLabel } from "../../../../src/client/audit-actions.ts";
import type { Input } from "../../../../src/client/types.ts";
import { api } from "../../api.ts";
import { Actor, namesOf, Resource, WithNames } from "../../audit-names.tsx";
import { type AuditSearch, type AuditSearchChange, auditSearchIn } from "../../audit-search.ts";
import { instantsOf, useTimezone } from "../../days.ts";
import { Icon } from "../../icons.tsx";
import { AuditDetail, Result } from "../../parts/audit-detail.tsx";
import { AuditFilters } from "../../parts/audit-filters.tsx";
import { AuditVerification } from "../../parts/audit-verification.tsx";
import { useOpened } from "../../parts/confirm.tsx";
import { More, usePages } from "../../parts/list.tsx";
import { Card, Empty, Waiting, When } from "../../parts/parts.tsx";
import { Failed } from "../../parts/problem.tsx";
import { Table } from "../../parts/table.tsx";

const TYPING_PAUSE_MS = 300;
const PAGE = 50;

type Query = Omit<NonNullable<Input<"exportAuditLog">["query"]>, "cursor" | "limit">;

/** Returns the filters in the API's form. */
const auditQueryOf = ({ from, to, ...others }: AuditSearch, timezone: string): Query => ({
  ...others,
  ...instantsOf({ from, to }, timezone),
});

export function AuditLog(): ReactElement {
  const timezone = useTimezone();
  return timezone === null ? <Waiting lines={8} /> : <Log timezone={timezone} />;
}

function Log({ timezone }: { readonly timezone: string }): ReactElement {
  const search = useSearch({ from: "/app/settings/audit" });
  const navigate = useNavigate({ from: "/settings/audit" });
  const set = (change: AuditSearchChange): void =>
    void navigate({ search: auditSearchIn({ ...search, ...change }), replace: true });
  const [settled] = useDebouncedValue(search, TYPING_PAUSE_MS);
  const filters = auditQueryOf(settled, timezone);
  const pages = usePages(["audit", filters], (cursor, options) =>
    api.listAuditLog({ query: { ...filters, ...cursor, limit: PAGE } }, options),
  );
  const [opened, open, close] = useOpened<AuditEntry>();
  const [isChecking, setChecking] = useState(false);
  const read = pages.data?.pages;
  const entries = read?.flatMap((page) => page.entries) ?? [];
  const names = useMemo(() => namesOf(read ?? []), [read]);
  const cells = useCallback((entry: AuditEntry) => <Cells entry={entry} onOpen={open} />, [open]);
  return (
    <WithNames value={names}>
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
        <AuditFilters search={search} set={set} timezone={timezone} />
        {pages.isPending ? <Waiting lines={8} /> : null}
        {pages.error === null ? null : <Failed error={pages.error} />}
        {read !== undefined && entries.length === 0 ? (
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
                <th>Action</th>
                <th>Result</th>
                <th>By</th>
                <th>When</th>
                <th className="right">No.</th>
              </>
            }
          />
        )}
        <More {...pages} />
        {opened === null ? null : <AuditDetail entry={opened} onClose={close} />}
        {isChecking ? <AuditVerification onClose={() => setChecking(false)} /> : null}
      </Card>
    </WithNames>
  );
}

interface CellsProps {
  readonly entry: AuditEntry;
  readonly onOpen: (entry: AuditEntry) => void;
}

const Cells = ({ entry, onOpen }: CellsProps): ReactElement => (
  <>
    <td className="main wide">
      <button type="button" className="row-link plain covers" onClick={() => onOpen(entry)}>
        {entryLabel(entry)}
      </button>
      <div className="audit-name clamp">
        <Resource entry={entry} />
      </div>
    </td>
    <td className="wide">
      <Result entry={entry} />
    </td>
    <td className="audit-name">
      <Actor entry={entry} />
    </td>
    <td>
      <When iso={entry.at} />
    </td>
    <td className="right figure away">{entry.sequence}</td>
  </>
);
