import { Button, Checkbox, Group, Kbd, Stack, Tabs, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactElement, startTransition, useEffect, useState } from "react";
import { msUntil, useSeconds } from "../clock.ts";
import { decide, decideMany, type Decision } from "../decisions.ts";
import { number } from "../format.ts";
import { Icon } from "../icons.tsx";
import { useKeys } from "../inbox-keys.ts";
import { type InboxChange, inboxOf, inboxSearchIn, isNarrowed } from "../inbox-search.ts";
import { ApprovalCard } from "../parts/approval-card.tsx";
import { ApprovalRow } from "../parts/approval-row.tsx";
import { Confirm } from "../parts/confirm.tsx";
import { DecidedNotice, type Ended, notSentOf, Sending, sumOf } from "../parts/decided.tsx";
import { Deny } from "../parts/deny.tsx";
import { InboxFilters } from "../parts/inbox-filters.tsx";
import { Card, Empty, Page, Waiting } from "../parts/parts.tsx";
import { Raises } from "../parts/raises.tsx";
import { Failed } from "../parts/problem.tsx";
import { canNotify, plusOf, usePending } from "../pending.ts";
import { signedOut, useMay } from "../session.tsx";
import type { Approval } from "../words.ts";
import { CompletedApprovals } from "./completed-approvals.tsx";

export function Approvals(): ReactElement {
  return (
    <Page title="Approvals" about="Payments that wait for a person’s decision." actions={<Notify />}>
      <Tabs defaultValue="pending" keepMounted={false}>
        <Tabs.List>
          <Tabs.Tab value="pending">Waiting</Tabs.Tab>
          <Tabs.Tab value="completed">Decided</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="pending" pt="md">
          <Raises />
          <Inbox />
        </Tabs.Panel>
        <Tabs.Panel value="completed" pt="md">
          <CompletedApprovals />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}

function Notify(): ReactElement | null {
  const [permission, setPermission] = useState(() => (canNotify() ? Notification.permission : "denied"));
  if (permission !== "default") return null;
  return (
    <Button
      variant="default"
      leftSection={<Icon name="info" />}
      onClick={() => void Notification.requestPermission().then(setPermission)}
    >
      Notify me
    </Button>
  );
}

type OpenDialog = { readonly how: Decision["how"]; readonly approvals: readonly Approval[] };

/**
 * Approvals drawn at first and added by each further step. A card is large, since it has everything needed to decide.
 */
const SHOWN = { cards: 10, compact: 30 };

const idsOf = (approvals: readonly Approval[]): readonly string[] => approvals.map(({ id }) => id);

const without = (ids: ReadonlySet<string>, some: readonly Approval[]): ReadonlySet<string> => {
  const left = new Set(ids);
  for (const { id } of some) left.delete(id);
  return left;
};

/** Decisions made on this page: those in flight, and the outcomes of the last ones. */
function useDecisions() {
  const client = useQueryClient();
  const [deciding, setDeciding] = useState<ReadonlySet<string>>(new Set());
  /** One decision on many payments. Only one such decision is sent at a time. */
  const [sending, setSending] = useState<OpenDialog | null>(null);
  const [ended, setEnded] = useState<readonly Ended[]>([]);

  const run = async (approvals: readonly Approval[], decision: Decision): Promise<void> => {
    const [first, ...others] = approvals;
    if (first === undefined) return;
    setEnded([]);
    setDeciding((now) => new Set([...now, ...idsOf(approvals)]));
    if (others.length > 0) setSending({ how: decision.how, approvals });
    const decided =
      others.length > 0
        ? await decideMany(idsOf(approvals), decision)
        : new Map([[first.id, await decide(first.id, decision)]]);
    if ([...decided.values()].some((each) => each.state === "refused" && each.refused.status === 401)) {
      return signedOut(client);
    }
    await client.invalidateQueries({ queryKey: ["approvals"] });
    startTransition(() => {
      setEnded((now) => [...now, { approvals, decision, decided }]);
      setDeciding((now) => without(now, approvals));
      if (others.length > 0) setSending(null);
    });
    for (const queryKey of [["agents"], ["transactions"]]) void client.invalidateQueries({ queryKey });
  };
  return { deciding, ended, run, sending };
}

function Inbox(): ReactElement {
  const { data, error, refetch } = usePending();
  if (data === undefined)
    return error === null ? (
      <Waiting lines={3} height={150} />
    ) : (
      <Failed error={error} retry={() => void refetch()} />
    );
  return <Pending {...data} onExpired={() => void refetch()} />;
}

interface PendingProps {
  readonly approvals: readonly Approval[];
  readonly nextCursor: string | null;
  readonly onExpired: () => void;
}

function Pending({ approvals: all, nextCursor, onExpired }: PendingProps): ReactElement {
  const search = useSearch({ from: "/app/approvals" });
  const navigate = useNavigate({ from: "/approvals" });
  const set = (change: InboxChange): void =>
    void navigate({ search: inboxSearchIn({ ...search, ...change }), replace: true });
  const { deciding, ended, run, sending } = useDecisions();
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [dialog, setDialog] = useState<OpenDialog | null>(null);
  const view = search.view ?? "cards";
  const [steps, setSteps] = useState(1);
  const shown = steps * SHOWN[view];
  const sent = new Set(sending === null ? [] : idsOf(sending.approvals));
  const waiting = all.filter(({ id }) => !sent.has(id));
  const approvals = inboxOf(waiting, search);
  const selected = approvals.filter(({ id }) => chosen.has(id) && !deciding.has(id));
  const mayDecide = useMay("member");
  useKeys(mayDecide && approvals.length > 0);

  const decideAll = (some: readonly Approval[], decision: Decision): void => {
    setDialog(null);
    setChosen((now) => without(now, some));
    void run(some, decision);
  };
  const toggle = (id: string): void => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    setChosen(next);
  };
  const Shown = view === "compact" ? ApprovalRow : ApprovalCard;
  const isOpen = new Set(idsOf(all));
  return (
    <Stack className="inbox" data-chosen={selected.length > 0}>
      <div aria-live="polite">
        {ended.map((each) => (
          <DecidedNotice
            key={each.approvals[0]?.id}
            ended={each}
            left={notSentOf(each).filter(({ id }) => isOpen.has(id) && !deciding.has(id))}
            isBusy={sending !== null}
            onContinue={(left) => decideAll(left, each.decision)}
          />
        ))}
      </div>
      {sending === null ? null : (
        <Sending
          how={sending.how}
          total={sending.approvals.length}
          decidedCount={sending.approvals.filter(({ id }) => !isOpen.has(id)).length}
        />
      )}
      {all.length > 1 || isNarrowed(search) ? (
        <InboxFilters approvals={all} search={search} set={set} />
      ) : null}
      {approvals.length === 0 ? (
        <Nothing isFiltered={waiting.length > 0} isSending={sending !== null} />
      ) : (
        <>
          {mayDecide ? (
            <Several
              selected={selected}
              shown={approvals}
              total={waiting.length}
              plus={plusOf({ nextCursor })}
              isBusy={sending !== null}
              onAll={(isAll) => setChosen(new Set(isAll ? idsOf(approvals) : []))}
              onDecide={(how) => setDialog({ how, approvals: selected })}
            />
          ) : null}
          <Expiry approvals={approvals} onExpired={onExpired} />
          <Stack gap={view === "compact" ? 6 : "md"}>
            {approvals.slice(0, shown).map((approval) => (
              <Shown
                key={approval.id}
                approval={approval}
                isChosen={chosen.has(approval.id)}
                isDeciding={deciding.has(approval.id)}
                onChoose={() => toggle(approval.id)}
                onApprove={() => void run([approval], { how: "approve" })}
                onDeny={() => setDialog({ how: "deny", approvals: [approval] })}
              />
            ))}
          </Stack>
          {approvals.length <= shown ? null : (
            <Button variant="default" onClick={() => setSteps(steps + 1)}>
              Show {Math.min(SHOWN[view], approvals.length - shown)} more of {approvals.length}
            </Button>
          )}
          <Text size="xs" c="dimmed" className="keys">
            <Kbd size="xs">j</Kbd> <Kbd size="xs">k</Kbd> next and previous · <Kbd size="xs">x</Kbd> choose ·{" "}
            <Kbd size="xs">a</Kbd> approve, with Enter · <Kbd size="xs">d</Kbd> deny, sent by{" "}
            <Kbd size="xs">Ctrl</Kbd> <Kbd size="xs">Enter</Kbd>
          </Text>
        </>
      )}
      {dialog?.how === "deny" ? (
        <Deny
          title={
            dialog.approvals.length === 1 ? "Deny the payment" : `Deny ${dialog.approvals.length} payments`
          }
          onDeny={(feedback) => decideAll(dialog.approvals, { how: "deny", feedback })}
          onClose={() => setDialog(null)}
        />
      ) : null}
      {dialog?.how === "approve" ? (
        <Confirm
          title={`Approve ${dialog.approvals.length} payments?`}
          action="Approve all"
          color="indigo"
          isBusy={false}
          problem=""
          onConfirm={() => decideAll(dialog.approvals, { how: "approve" })}
          onClose={() => setDialog(null)}
        >
          Total: {sumOf(dialog.approvals)}. Each is checked against the hard limits again.
        </Confirm>
      ) : null}
    </Stack>
  );
}

interface NothingProps {
  /** Whether payments wait that the filters exclude. */
  readonly isFiltered: boolean;
  readonly isSending: boolean;
}

function Nothing({ isFiltered, isSending }: NothingProps): ReactElement | null {
  if (isSending) return null;
  return (
    <Card>
      {isFiltered ? (
        <Empty icon="inbox" title="Nothing matches the filters">
          Other payments wait for approval.
        </Empty>
      ) : (
        <Empty icon="check" title="Nothing waits for approval">
          What is above an agent’s threshold, or what a rule flags, comes here as soon as the agent asks for
          it.
        </Empty>
      )}
    </Card>
  );
}

interface SeveralProps {
  readonly selected: readonly Approval[];
  /** Approvals that match the filters; `total` counts all. */
  readonly shown: readonly Approval[];
  readonly total: number;
  /** "+" if more approvals wait than were read. */
  readonly plus: "+" | "";
  readonly isBusy: boolean;
  readonly onAll: (isAll: boolean) => void;
  readonly onDecide: (how: Decision["how"]) => void;
}

/** The number and sum of the shown or chosen payments, and the actions on several. */
function Several({ isBusy, onAll, onDecide, plus, selected, shown, total }: SeveralProps): ReactElement {
  const all = `${number(total)}${plus} waiting`;
  const count = shown.length === total ? all : `${number(shown.length)} of ${all}`;
  return (
    <Group justify="space-between" mih={36} className="several">
      <Checkbox
        label={
          selected.length === 0
            ? `${count} · ${sumOf(shown)}${plus}`
            : `${number(selected.length)} chosen · ${sumOf(selected)}`
        }
        checked={selected.length === shown.length}
        indeterminate={selected.length > 0 && selected.length < shown.length}
        onChange={({ currentTarget }) => onAll(currentTarget.checked)}
      />
      {selected.length === 0 ? null : (
        <Group gap="xs" className="several-buttons">
          <Button variant="default" size="compact-md" disabled={isBusy} onClick={() => onDecide("deny")}>
            Deny chosen
          </Button>
          <Button size="compact-md" disabled={isBusy} onClick={() => onDecide("approve")}>
            Approve chosen
          </Button>
        </Group>
      )}
    </Group>
  );
}

interface ExpiryProps {
  readonly approvals: readonly Approval[];
  readonly onExpired: () => void;
}

/** Refetches approvals when they expire on screen. Checks each second without rendering the inbox. */
function Expiry({ approvals, onExpired }: ExpiryProps): null {
  const tick = useSeconds();
  const isOver = approvals.some(({ expiresAt }) => msUntil(expiresAt) <= 0);
  useEffect(() => {
    if (isOver) onExpired();
  }, [isOver, isOver ? tick : 0]);
  return null;
}
