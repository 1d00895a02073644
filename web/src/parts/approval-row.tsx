import { payeeOf } from "../words.ts";
import { Badge, Button, Group } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { useIsOver } from "../clock.ts";
import { exactMoney } from "../format.ts";
import { shortFlagOf } from "../rule-types.tsx";
import { type CardProps, ChoiceBox, TimeLeft } from "./approval-card.tsx";
import { useMay } from "../session.tsx";
import { Written } from "./parts.tsx";

export function ApprovalRow(props: CardProps): ReactElement {
  const { approval, isDeciding, onApprove, onDeny } = props;
  const isOver = useIsOver(approval.expiresAt);
  const mayDecide = useMay("member");
  const amount = exactMoney(approval);
  return (
    <article
      className="card approval approval-row"
      data-approval={approval.id}
      tabIndex={-1}
      aria-label={`${amount} for ${approval.agentName}`}
    >
      <ChoiceBox {...props} isOver={isOver} />
      <strong className="figure">{amount}</strong>
      <div className="approval-row-what">
        <Link to="/approvals/$id" params={{ id: approval.id }} className="row-link">
          <Written text={payeeOf(approval)} />
        </Link>
        <span className="muted">
          <Written text={approval.agentName} /> · <Written text={approval.purpose} />
        </span>
      </div>
      <Group gap={6} className="approval-row-flags">
        {approval.flaggedByRuleTypes.map((type) => (
          <Badge key={type} color="yellow">
            {shortFlagOf(type)}
          </Badge>
        ))}
      </Group>
      <TimeLeft until={approval.expiresAt} />
      {mayDecide ? (
        <Group gap="xs" wrap="nowrap" className="approval-row-buttons">
          <Button
            variant="default"
            size="compact-md"
            disabled={isOver || isDeciding}
            aria-label={`Deny ${amount}`}
            onClick={onDeny}
            data-key="deny"
          >
            Deny…
          </Button>
          <Button
            size="compact-md"
            disabled={isOver}
            loading={isDeciding}
            aria-label={`Approve ${amount}`}
            onClick={onApprove}
            data-key="approve"
          >
            Approve
          </Button>
        </Group>
      ) : null}
    </article>
  );
}
