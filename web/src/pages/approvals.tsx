import { Button, Checkbox, Group, Kbd, Stack, Tabs, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { type ReactElement, useEffect, useState } from "react";
import { sentenceOf } from "../api.ts";
import { msUntil, useSeconds } from "../clock.ts";
import { decide, type Decided, type Decision } from "../decisions.ts";
import { money } from "../format.ts";
import { Icon } from "../icons.tsx";
import { ApprovalCard } from "../parts/approval-card.tsx";
import { Confirm } from "../parts/confirm.tsx";
import { Deny } from "../parts/deny.tsx";
import { Card, Empty, Page, Waiting } from "../parts/parts.tsx";
import { Failed, Problem } from "../parts/problem.tsx";
import { canNotify, plusOf, usePending } from "../pending.ts";
import type { Approval } from "../words.ts";
import { CompletedApprovals } from "./completed-approvals.tsx";

/** The inbox: what waits for a person, and what became of the rest. */
export function Approvals(): ReactElement {
  return (
    <Page title="Approvals" about="Payments that wait for a person’s decision." actions={<Notify />}>
      <Tabs defaultValue="pending" keepMounted={false}>
        <Tabs.List>
          <Tabs.Tab value="pending">Waiting</Tabs.Tab>
          <Tabs.Tab value="completed">Decided</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="pending" pt="md">
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

/** What came of decisions that did not go as they were meant, in words. */
function outcomeText(approval: Approval, decided: Decided): string | null {
  const what = `${money(approval.amountCents, approval.currency)} to ${approval.recipient}`;
  switch (decided.state) {
    case "done":
      return decided.approval.resolution === "failed" ? `${what}: approved, but not paid.` : null;
    case "late":
      return decided.approval?.resolvedBy
        ? `${what}: your decision came too late, ${decided.approval.resolvedBy.name} has ${decided.approval.resolution === "denied" ? "denied" : "approved"} it.`
        : `${what}: your decision came too late.`;
    case "not arrived":
      return `${what}: your decision has not arrived. It still waits: decide again.`;
    case "refused":
      return `${what}: ${sentenceOf(decided.refused)}`;
  }
}

type OpenDialog = { readonly how: "deny" | "approve several"; readonly approvals: readonly Approval[] };

/** Cards that are drawn at first, and with each further step: each holds much to decide by. */
const SHOWN = 20;

function Inbox(): ReactElement {
  const client = useQueryClient();
  const { data, error, refetch } = usePending();
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [deciding, setDeciding] = useState<ReadonlySet<string>>(new Set());
  const [notices, setNotices] = useState<readonly string[]>([]);
  const [dialog, setDialog] = useState<OpenDialog | null>(null);
  const [shown, setShown] = useState(SHOWN);
  const approvals = data?.approvals ?? [];
  const selected = approvals.filter(({ id }) => chosen.has(id));
  useKeys(approvals.length > 0);

  const run = async (which: readonly Approval[], decision: Decision): Promise<void> => {
    setNotices([]);
    setDeciding((now) => new Set([...now, ...which.map(({ id }) => id)]));
    const ended = await Promise.all(
      which.map(async (approval) => outcomeText(approval, await decide(approval.id, decision))),
    );
    setNotices(ended.filter((each) => each !== null));
    // What was chosen or asked about others meanwhile stays.
    const isOne = (id: string): boolean => which.some((each) => each.id === id);
    setDialog((now) => (now?.approvals.some(({ id }) => isOne(id)) === true ? null : now));
    setChosen((now) => new Set([...now].filter((id) => !isOne(id))));
    await client.invalidateQueries({ queryKey: ["approvals"] });
    setDeciding((now) => new Set([...now].filter((id) => !isOne(id))));
    for (const queryKey of [["agents"], ["transactions"]]) void client.invalidateQueries({ queryKey });
  };
  const toggle = (id: string): void => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    setChosen(next);
  };
  if (data === undefined)
    return error === null ? (
      <Waiting lines={3} height={150} />
    ) : (
      <Failed error={error} retry={() => void refetch()} />
    );
  return (
    <Stack>
      <div aria-live="polite">
        {notices.map((each) => (
          <Problem key={each} text={each} />
        ))}
      </div>
      {approvals.length === 0 ? (
        <Card>
          <Empty icon="check" title="Nothing waits for approval">
            What is above an agent’s threshold, or what a rule flags, comes here as soon as the agent asks for
            it.
          </Empty>
        </Card>
      ) : (
        <>
          <Several
            selected={selected}
            all={approvals}
            plus={plusOf(data)}
            onAll={(isAll) => setChosen(new Set(isAll ? approvals.map(({ id }) => id) : []))}
            onApprove={() => setDialog({ how: "approve several", approvals: selected })}
            onDeny={() => setDialog({ how: "deny", approvals: selected })}
          />
          <Expiry approvals={approvals} onExpired={() => void refetch()} />
          {approvals.slice(0, shown).map((approval) => (
            <ApprovalCard
              key={approval.id}
              approval={approval}
              isChosen={chosen.has(approval.id)}
              isDeciding={deciding.has(approval.id)}
              onChoose={() => toggle(approval.id)}
              onApprove={() => void run([approval], { how: "approve" })}
              onDeny={() => setDialog({ how: "deny", approvals: [approval] })}
            />
          ))}
          {approvals.length <= shown ? null : (
            <Button variant="default" onClick={() => setShown(shown + SHOWN)}>
              Show {Math.min(SHOWN, approvals.length - shown)} more of {approvals.length}
            </Button>
          )}
          <Text size="xs" c="dimmed" className="keys">
            <Kbd size="xs">j</Kbd> <Kbd size="xs">k</Kbd> next and previous · <Kbd size="xs">x</Kbd> choose ·{" "}
            <Kbd size="xs">a</Kbd> approve, with Enter · <Kbd size="xs">d</Kbd> deny
          </Text>
        </>
      )}
      {dialog?.how === "deny" ? (
        <Deny
          title={
            dialog.approvals.length === 1 ? "Deny the payment" : `Deny ${dialog.approvals.length} payments`
          }
          isBusy={dialog.approvals.some(({ id }) => deciding.has(id))}
          onDeny={(feedback) => void run(dialog.approvals, { how: "deny", feedback })}
          onClose={() => setDialog(null)}
        />
      ) : null}
      {dialog?.how === "approve several" ? (
        <Confirm
          title={`Approve ${dialog.approvals.length} payments?`}
          action="Approve all"
          color="indigo"
          isBusy={dialog.approvals.some(({ id }) => deciding.has(id))}
          problem=""
          onConfirm={() => void run(dialog.approvals, { how: "approve" })}
          onClose={() => setDialog(null)}
        >
          Together {money(dialog.approvals.reduce((sum, { amountCents }) => sum + amountCents, 0))}. Each is
          checked against the hard limits again.
        </Confirm>
      ) : null}
    </Stack>
  );
}

interface SeveralProps {
  readonly selected: readonly Approval[];
  readonly all: readonly Approval[];
  /** Where more wait than were read. */
  readonly plus: "+" | "";
  readonly onAll: (isAll: boolean) => void;
  readonly onApprove: () => void;
  readonly onDeny: () => void;
}

/** What is done with several at once. */
function Several({ all, onAll, onApprove, onDeny, plus, selected }: SeveralProps): ReactElement {
  return (
    <Group justify="space-between" mih={36}>
      <Checkbox
        label={selected.length === 0 ? `${all.length}${plus} waiting` : `${selected.length} chosen`}
        checked={selected.length === all.length}
        indeterminate={selected.length > 0 && selected.length < all.length}
        onChange={({ currentTarget }) => onAll(currentTarget.checked)}
      />
      {selected.length === 0 ? null : (
        <Group gap="xs">
          <Button variant="default" size="compact-md" onClick={onDeny}>
            Deny chosen
          </Button>
          <Button size="compact-md" onClick={onApprove}>
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

/** What expires while it is looked at is read again when its time is over. It looks each second, and the inbox is not drawn for that. */
function Expiry({ approvals, onExpired }: ExpiryProps): null {
  const tick = useSeconds();
  const isOver = approvals.some(({ expiresAt }) => msUntil(expiresAt) <= 0);
  useEffect(() => {
    if (isOver) onExpired();
  }, [isOver, isOver ? tick : 0]);
  return null;
}

const CARD = "[data-approval]";

/** Goes through the cards by keys. Approving takes a second one: the key alone only goes to the button. */
function useKeys(isOn: boolean): void {
  useEffect(() => {
    if (!isOn) return;
    const listen = (event: KeyboardEvent): void => {
      const { target } = event;
      const isTyping =
        target instanceof HTMLElement && target.closest("input[type=text], textarea, [role=dialog]");
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      if (act(event.key)) event.preventDefault();
    };
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  }, [isOn]);
}

function act(key: string): boolean {
  const cards = [...document.querySelectorAll<HTMLElement>(CARD)];
  const current = document.activeElement?.closest<HTMLElement>(CARD) ?? null;
  const at = current === null ? -1 : cards.indexOf(current);
  if (key === "j" || key === "k") {
    const next = cards[key === "j" ? Math.min(at + 1, cards.length - 1) : Math.max(at - 1, 0)];
    next?.focus();
    return next !== undefined;
  }
  const button = { a: "approve", d: "deny", x: "choose" }[key];
  const found = button === undefined ? null : current?.querySelector<HTMLElement>(`[data-key=${button}]`);
  if (!found) return false;
  if (key === "a") found.focus();
  else found.click();
  return true;
}
