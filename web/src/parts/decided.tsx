import { Alert, Button, Group, Progress, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { valueOf } from "../../../src/client/client.ts";
import { api, sentenceOf } from "../api.ts";
import type { Decided, Decision } from "../decisions.ts";
import { exactMoney, asWritten, money, number } from "../format.ts";
import { Icon } from "../icons.tsx";
import { type Approval, payeeOf } from "../words.ts";
import { Card } from "./parts.tsx";

/** A decision on one or many approvals, and its outcomes. An approval without an outcome was not sent. */
export interface Ended {
  readonly approvals: readonly Approval[];
  readonly decision: Decision;
  readonly decided: ReadonlyMap<string, Decided>;
}

export const sumOf = (approvals: readonly Approval[]): string =>
  money(approvals.reduce((sum, { amountCents }) => sum + amountCents, 0));

type Kind = "declined" | "denied" | "executing" | "late" | "notSent" | "paid";

const KINDS = {
  approved: "paid",
  executing: "executing",
  failed: "declined",
  denied: "denied",
  expired: "late",
} as const;

function kindOf(decided: Decided | undefined): Kind {
  if (decided?.state === "done") return KINDS[decided.approval.resolution ?? "expired"];
  return decided?.state === "late" ? "late" : "notSent";
}

/** Words for outcomes, in the order of the sentence. */
const WORDS: readonly (readonly [Kind, string])[] = [
  ["paid", "paid"],
  ["executing", "on their way"],
  ["declined", "declined"],
  ["denied", "denied"],
  ["late", "decided by somebody else or expired"],
  ["notSent", "not sent"],
];

/** Returns the approvals that still wait for this decision. */
export const notSentOf = ({ approvals, decided }: Ended): readonly Approval[] =>
  approvals.filter(({ id }) => kindOf(decided.get(id)) === "notSent");

function sentenceOfOne(approval: Approval, decided: Decided | undefined): string {
  const what = `${exactMoney(approval)} to ${asWritten(payeeOf(approval))}`;
  switch (kindOf(decided)) {
    case "paid":
      return `Paid ${what}.`;
    case "executing":
      return `Approved ${what}: the payment is on its way.`;
    case "declined":
      return `${what}: approved, but not paid.`;
    case "denied":
      return `Denied ${what}.`;
    case "late": {
      const by = decided?.state === "late" ? decided.approval : null;
      return by?.resolvedBy
        ? `${what}: your decision came too late, ${asWritten(by.resolvedBy.name)} has ${by.resolution === "denied" ? "denied" : "approved"} it.`
        : `${what}: your decision came too late.`;
    }
    case "notSent":
      return decided?.state === "refused"
        ? `${what}: ${sentenceOf(decided.refused)}`
        : `${what}: your decision has not arrived. It still waits: decide again.`;
  }
}

/** Returns sentences about many approvals: the number of each outcome, the sum paid, and why some were not sent. */
function sentencesOfMany({ approvals, decided }: Ended): readonly string[] {
  const of = (kind: Kind): readonly Approval[] =>
    approvals.filter(({ id }) => kindOf(decided.get(id)) === kind);
  const counts = WORDS.flatMap(([kind, words]) => {
    const count = of(kind).length;
    return count === 0 ? [] : [`${number(count)} ${words}`];
  });
  const refused = [...decided.values()].find(({ state }) => state === "refused");
  return [
    `${counts.join(", ")}.`,
    of("paid").length === 0 ? "" : `${sumOf(of("paid"))} was paid.`,
    refused?.state === "refused" ? sentenceOf(refused.refused) : "",
  ];
}

const POLL_INTERVAL_MS = 1_500;
/** Polling interval per payment in flight: 200 payments take at most 400 reads a minute. */
const POLL_INTERVAL_MS_EACH = 150;

/** Follows payments in flight to their ends. */
function useFollowed(ended: Ended): Ended {
  const ids = ended.approvals.map(({ id }) => id);
  const executing = ids.filter((id) => kindOf(ended.decided.get(id)) === "executing");
  const queryKey = ["executing", ...executing];
  const { data } = useQuery({
    queryKey,
    enabled: executing.length > 0,
    queryFn: async ({ client, signal }) => {
      const read = new Map(client.getQueryData<ReadonlyMap<string, Decided>>(queryKey));
      for (const id of executing.filter((each) => !read.has(each))) {
        const { approval } = valueOf(await api.getApproval({ id }, { signal }));
        if (approval.resolution !== "executing") read.set(id, { state: "done", approval });
      }
      return read;
    },
    refetchInterval: ({ state }) => {
      const left = executing.length - (state.data?.size ?? 0);
      return left > 0 && Math.max(POLL_INTERVAL_MS, left * POLL_INTERVAL_MS_EACH);
    },
  });
  return data === undefined ? ended : { ...ended, decided: new Map([...ended.decided, ...data]) };
}

interface NoticeProps {
  readonly ended: Ended;
  /** Approvals that still wait and were not sent. */
  readonly left: readonly Approval[];
  readonly isBusy: boolean;
  readonly onContinue: (left: readonly Approval[]) => void;
}

export function DecidedNotice({ ended: answered, isBusy, left, onContinue }: NoticeProps): ReactElement {
  const ended = useFollowed(answered);
  const { approvals, decided } = ended;
  const isWhole = approvals.every(({ id }) =>
    ["denied", "executing", "paid"].includes(kindOf(decided.get(id))),
  );
  const [first] = approvals;
  const sentences =
    approvals.length === 1 && first !== undefined
      ? [sentenceOfOne(first, decided.get(first.id))]
      : sentencesOfMany(ended);
  return (
    <Alert
      variant="light"
      color={isWhole ? "teal" : "red"}
      icon={<Icon name={isWhole ? "check" : "alert"} />}
      className="problem"
      role={isWhole ? "status" : "alert"}
    >
      <Group justify="space-between">
        <Text size="sm" className="break">
          {sentences.filter((each) => each !== "").join(" ")}
        </Text>
        {left.length === 0 ? null : (
          <Button size="compact-sm" variant="default" disabled={isBusy} onClick={() => onContinue(left)}>
            {left.length === 1 ? "Send again" : `Continue with ${number(left.length)}`}
          </Button>
        )}
      </Group>
    </Alert>
  );
}

interface SendingProps {
  readonly how: Decision["how"];
  readonly total: number;
  readonly decidedCount: number;
}

export function Sending({ decidedCount, how, total }: SendingProps): ReactElement {
  const verb = how === "approve" ? "Approving" : "Denying";
  return (
    <Card>
      <Stack gap="xs">
        <Text size="sm">
          {verb} {number(total)} payments: {number(decidedCount)} decided
        </Text>
        <Progress
          aria-label={`${verb} ${number(total)} payments`}
          value={(100 * decidedCount) / Math.max(total, 1)}
        />
      </Stack>
    </Card>
  );
}
