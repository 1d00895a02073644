import { Anchor, Group, Stack, Text, Timeline, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { Drawer } from "./dialog.tsx";
import { valueOf } from "../../../src/client/client.ts";
import { entryLabel } from "../../../src/client/audit-actions.ts";
import type { Output } from "../../../src/client/types.ts";
import { api } from "../api.ts";
import { exactMoney, money, number, onTheWall, titled } from "../format.ts";
import { restrictionSentences } from "../restrictions.ts";
import { sentenceOfRule, shortFlagOf } from "../rule-types.tsx";
import { type Transaction, payeeIn } from "../words.ts";
import { ChargedFacts, ChargedState } from "./charged.tsx";
import { Fact, Facts, State, Waiting, Written } from "./parts.tsx";
import { Failed } from "./problem.tsx";
import { CopyIcon } from "./secret.tsx";
import { RAILS } from "../rails.ts";
import { PurchaseFacts } from "./purchase.tsx";
import { limitOf } from "./raises.tsx";
import { useMay } from "../session.tsx";

type Story = Output<"getTransactionExplanation">;

export function TransactionDrawer({
  id,
  onClose,
}: {
  readonly id: string;
  readonly onClose: () => void;
}): ReactElement {
  const { data, error, isPending } = useQuery({
    queryKey: ["transactions", "story", id],
    queryFn: async ({ signal }) => valueOf(await api.getTransactionExplanation({ id }, { signal })),
  });
  return (
    <Drawer opened onClose={onClose} position="right" size="md" title="Transaction">
      {isPending ? <Waiting /> : null}
      {error === null ? null : <Failed error={error} />}
      {data === undefined ? null : (
        <Stack>
          <Payment transaction={data.transaction} />
          <CardOf story={data} />
          <Steps story={data} />
          <Limits story={data} />
          <Rules story={data} />
          <History story={data} />
        </Stack>
      )}
    </Drawer>
  );
}

function Payment({ transaction }: { readonly transaction: Transaction }): ReactElement {
  const { denialDetails, onChainTxHash } = transaction;
  return (
    <>
      <div>
        <div className="approval-amount figure">{exactMoney(transaction)}</div>
        <Group gap="xs" mt={6}>
          <ChargedState transaction={transaction} />
          <span className="muted">{RAILS[transaction.rail].label}</span>
        </Group>
      </div>
      <Facts>
        <Fact label="To">
          <Written text={payeeIn(transaction)} />
        </Fact>
        <PurchaseFacts purchase={transaction} payee={transaction.merchant} />
        <Fact label="Purpose (stated by the agent)">
          <Written text={transaction.purpose} />
        </Fact>
        <Fact label="Agent">
          <Link to="/agents/$id" params={{ id: transaction.agentId }} className="row-link">
            <Written text={transaction.agentName} />
          </Link>
        </Fact>
        {transaction.denialReason === null ? null : (
          <Fact label="Reason">
            {transaction.denialReason} <span className="mono muted">{transaction.denialCode}</span>
          </Fact>
        )}
        <ChargedFacts transaction={transaction} />
        {denialDetails === null ? null : (
          <Fact label="The limit">
            {number(denialDetails.limit)}, of which {number(denialDetails.remaining)} was left
            {denialDetails.resetsAt === null
              ? ""
              : `; it begins anew at ${onTheWall(denialDetails.resetsAt)}`}
          </Fact>
        )}
        {onChainTxHash === null ? null : (
          <Fact label={`On chain ${transaction.chainCaip2 ?? ""}`}>
            <span className="mono">{onChainTxHash}</span>{" "}
            <CopyIcon text={onChainTxHash} label="Copy the hash" />
          </Fact>
        )}
        <Fact label="Id">
          <span className="mono">{transaction.id}</span>{" "}
          <CopyIcon text={transaction.id} label="Copy the id" />
        </Fact>
      </Facts>
    </>
  );
}

/** The payment's own card, which admins may view on a separate page. */
function CardOf({ story: { card } }: { readonly story: Story }): ReactElement | null {
  const isAdmin = useMay("admin");
  if (card === null) return null;
  const { last4, readyUntil, stage, viewUrl } = card;
  return (
    <section>
      <Title order={3} mb="xs">
        Card
      </Title>
      <Facts>
        <Fact label="Card of this payment alone">
          ends in <span className="mono">{last4}</span>
        </Fact>
        {stage === null ? null : <Fact label="Stage">{STAGES[stage]}</Fact>}
        {stage === "armed" ? (
          <Fact label="Waits for its first charge until">{onTheWall(readyUntil)}</Fact>
        ) : null}
      </Facts>
      {isAdmin && (stage === "armed" || stage === "authorized") ? (
        <Anchor href={new URL(viewUrl).pathname} target="_blank" size="sm">
          Show number and code
        </Anchor>
      ) : null}
    </section>
  );
}

const STAGES: Readonly<Record<NonNullable<NonNullable<Story["card"]>["stage"]>, string>> = {
  armed: "Armed: nothing is charged yet",
  authorized: "Authorized: the merchant may charge it",
  captured: "Charged",
  released: "Released: it can’t be charged",
};

interface Step {
  readonly key: string;
  readonly at: string;
  readonly title: string;
  readonly about: string | null;
}

const OUTCOMES = {
  approved: "Within policy",
  held: "Held for approval",
  denied: "Denied by policy",
} as const;

/** A network's steps, from the customer's point of view. */
const STEPS: Partial<Record<Story["railSteps"][number]["kind"], string>> = {
  captured: "Charged",
  released: "Rest released",
  refund_reversed: "Refund taken back",
  dispute_lost: "Dispute lost",
};

/** Returns the steps in the order in which they happened. */
function stepsOf({ approval, decision, events, railSteps, transaction }: Story): readonly Step[] {
  const flags = decision?.flaggedByRuleTypes.map(shortFlagOf).join(", ") ?? "";
  const shadows = (transaction.wouldHaveFlagged ?? []).map(shortFlagOf).join(", ");
  const shadow = shadows === "" ? "" : `would have been flagged by: ${shadows}`;
  const version = decision?.policyVersion ?? null;
  const steps: Step[] = [
    {
      key: "asked",
      at: transaction.createdAt,
      title: decision === null ? "Asked for" : OUTCOMES[decision.outcome],
      about:
        [version === null ? "" : `Policy version ${version}`, flags, shadow]
          .filter((part) => part !== "")
          .join(" · ") || null,
    },
  ];
  if (approval?.resolution !== undefined) {
    const by = approval.resolvedBy?.name;
    steps.push({
      key: "approval",
      at: approval.resolvedAt ?? approval.createdAt,
      title: `${titled(approval.resolution)}${by === undefined ? "" : ` by ${by}`}`,
      about: approval.feedback ?? null,
    });
  }
  const amountOf = (cents: number | null): string =>
    cents === null || cents === 0 ? "" : ` ${money(cents, transaction.currency)}`;
  for (const step of railSteps) {
    steps.push({
      key: step.id,
      at: step.createdAt,
      title: `${STEPS[step.kind] ?? titled(step.kind)}${amountOf(step.amountCents)} ${RAILS[transaction.rail].steps}`,
      about: step.reason ?? step.onChainTxHash,
    });
  }
  for (const event of events) {
    steps.push({ key: event.id, at: event.createdAt, title: `Event: ${event.type}`, about: null });
  }
  return steps.toSorted((a, b) => (a.at < b.at ? -1 : Number(a.at > b.at)));
}

function Steps({ story }: { readonly story: Story }): ReactElement {
  const steps = stepsOf(story);
  return (
    <section>
      <Title order={3} mb="sm">
        What happened
      </Title>
      <Timeline active={steps.length} bulletSize={14} lineWidth={2}>
        {steps.map(({ about, at, key, title }) => (
          <Timeline.Item key={key} title={title}>
            {about === null ? null : (
              <Text size="sm" className="break">
                <Written text={about} />
              </Text>
            )}
            <Text size="xs" c="dimmed">
              {onTheWall(at)}
            </Text>
          </Timeline.Item>
        ))}
      </Timeline>
    </section>
  );
}

/** Limits with the values used for the payment's decision. */
function Limits({ story }: { readonly story: Story }): ReactElement | null {
  const { limits, transaction } = story;
  if (limits === null || limits.length === 0) return null;
  return (
    <section>
      <Title order={3} mb="xs">
        Limits then
      </Title>
      <Facts>
        {limits.map(({ level, limit, used, value }) => {
          const show = (amount: number): string =>
            isCount(limit) ? number(amount) : money(amount, transaction.currency);
          return (
            <Fact key={`${level} ${limit}`} label={limitOf({ level, limit })}>
              {show(used)} used of {show(value)}
            </Fact>
          );
        })}
      </Facts>
    </section>
  );
}

/** The rules and restrictions that the payment was judged by. */
function Rules({ story: { restrictions, rules } }: { readonly story: Story }): ReactElement | null {
  const judged = rules?.filter(({ rule }) => rule.enabled || rule.shadow === true) ?? [];
  const all = restrictions ?? [];
  if (judged.length + all.length === 0) return null;
  return (
    <section>
      <Title order={3} mb="xs">
        Rules then
      </Title>
      <Facts>
        {all.map(({ forbidden, level, restrictions: lists }) => (
          <Fact
            key={level}
            label={`The ${level}’s restrictions ${forbidden === null ? "allowed it" : "denied it"}`}
          >
            <Written text={restrictionSentences(lists, (code) => code).join(" ")} />
          </Fact>
        ))}
        {judged.map(({ flagged, level, rule }) => (
          <Fact
            key={rule.id}
            label={`The ${level}’s rule${rule.enabled ? "" : ", in the shadow,"} ${FLAGGED[String(flagged)]}`}
          >
            <Written text={sentenceOfRule({ ...rule, key: rule.id })} />
          </Fact>
        ))}
      </Facts>
    </section>
  );
}

const FLAGGED: Readonly<Record<string, string>> = {
  true: "flagged it",
  false: "did not flag it",
  null: "is not known to have flagged it",
};

const isCount = (limit: string): boolean => limit === "hourly_velocity" || limit === "daily_velocity";

/** Webhook deliveries and audit entries, for people who may read them. */
function History({ story }: { readonly story: Story }): ReactElement | null {
  const { auditEntries, webhookDeliveries } = story;
  if (auditEntries === null && webhookDeliveries === null) return null;
  return (
    <section>
      <Title order={3} mb="xs">
        Records
      </Title>
      <Facts>
        <Fact label="Webhooks">
          {webhookDeliveries === null || webhookDeliveries.length === 0
            ? "Sent to no endpoint"
            : webhookDeliveries.map(({ delivery, endpointId }) => (
                <Link
                  key={delivery.id}
                  to="/settings/webhooks/$id"
                  params={{ id: endpointId }}
                  className="row-link inline"
                >
                  {delivery.eventType} <State of={delivery.status} />
                </Link>
              ))}
        </Fact>
        <Fact label="Audit log">
          {auditEntries === null || auditEntries.length === 0
            ? "No entries yet"
            : auditEntries.map((entry) => (
                <div key={entry.sequence}>
                  No. {entry.sequence}: {entryLabel(entry)}
                </div>
              ))}
        </Fact>
      </Facts>
    </section>
  );
}
