import { Badge, Button, Checkbox, Group, Text, Tooltip } from "@mantine/core";
import { useInViewport } from "@mantine/hooks";
import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { msUntil, useIsOver, useSeconds } from "../clock.ts";
import { exactMoney, timeLeft } from "../format.ts";
import { Icon } from "../icons.tsx";
import { flagOf, shortFlagOf } from "../rule-types.tsx";
import { RAILS } from "../rails.ts";
import { useMay } from "../session.tsx";
import { type Approval, payeeOf } from "../words.ts";
import { ApprovalBars, LastPaymentsInList } from "./approval-bars.tsx";
import { When, Written } from "./parts.tsx";

export interface CardProps {
  readonly approval: Approval;
  readonly isChosen: boolean;
  readonly isDeciding: boolean;
  readonly onChoose: () => void;
  readonly onApprove: () => void;
  readonly onDeny: () => void;
}

const HOUR_MS = 3_600_000;

/** Remaining time. Rendered each second, unlike the card that contains it. */
export function TimeLeft({ until }: { readonly until: string }): ReactElement {
  useSeconds();
  const leftMs = msUntil(until);
  return (
    <Badge
      color={leftMs > 0 && leftMs < HOUR_MS ? "red" : "gray"}
      leftSection={<Icon name="clock" size={13} />}
      role="timer"
      className="timer"
    >
      {leftMs <= 0 ? "Time is over" : timeLeft(leftMs)}
    </Badge>
  );
}

type ChoiceProps = Pick<CardProps, "approval" | "isChosen" | "isDeciding" | "onChoose"> & {
  readonly isOver: boolean;
};

/** Checkbox that selects a payment for a decision on several. Renders nothing for a person who may not decide. */
export function ChoiceBox(props: ChoiceProps): ReactElement | null {
  const { approval, isChosen, isDeciding, isOver, onChoose } = props;
  return useMay("member") ? (
    <Checkbox
      aria-label={`Choose ${exactMoney(approval)}`}
      checked={isChosen}
      onChange={onChoose}
      disabled={isOver || isDeciding}
      data-key="choose"
    />
  ) : null;
}

export function ApprovalCard(props: CardProps): ReactElement {
  const { approval, isDeciding, onApprove, onDeny } = props;
  const { inViewport, ref } = useInViewport();
  const isOver = useIsOver(approval.expiresAt);
  const mayDecide = useMay("member");
  const amount = exactMoney(approval);
  return (
    <article
      ref={ref}
      className="card approval"
      data-approval={approval.id}
      tabIndex={-1}
      aria-label={`${amount} for ${approval.agentName}`}
    >
      <div className="approval-head">
        <ChoiceBox {...props} isOver={isOver} />
        <div className="approval-what">
          <div className="approval-amount figure">{amount}</div>
          <Text size="sm" className="break">
            to{" "}
            <strong>
              <Written text={payeeOf(approval)} />
            </strong>
          </Text>
        </div>
        <TimeLeft until={approval.expiresAt} />
      </div>
      <div className="approval-body">
        <div className="approval-facts">
          <Text size="sm" className="break quote">
            <Written text={approval.purpose} />
          </Text>
          <Text size="sm" c="dimmed" className="inline break">
            <Icon name={RAILS[approval.rail].icon} size={15} />
            <span>
              <Link to="/agents/$id" params={{ id: approval.agentId }} className="row-link">
                <Written text={approval.agentName} />
              </Link>{" "}
              asks {RAILS[approval.rail].by}, <When iso={approval.createdAt} />
            </span>
          </Text>
          <Group gap={6}>
            {approval.flaggedByRuleTypes.map((type) => (
              <Tooltip key={type} label={flagOf(type)} multiline maw={280}>
                <Badge color="yellow" tabIndex={0} aria-label={flagOf(type)}>
                  {shortFlagOf(type)}
                </Badge>
              </Tooltip>
            ))}
          </Group>
          <LastPaymentsInList approval={approval} isSeen={inViewport} />
        </div>
        <ApprovalBars approval={approval} isSeen={inViewport} />
      </div>
      <div className="approval-actions">
        <Link to="/approvals/$id" params={{ id: approval.id }} className="row-link muted">
          Details
        </Link>
        {mayDecide ? (
          <Group gap="xs" className="approval-buttons">
            <Button
              variant="default"
              size="md"
              disabled={isOver || isDeciding}
              onClick={onDeny}
              data-key="deny"
            >
              Deny…
            </Button>
            <Button size="md" disabled={isOver} loading={isDeciding} onClick={onApprove} data-key="approve">
              Approve {amount}
            </Button>
          </Group>
        ) : null}
      </div>
    </article>
  );
}
