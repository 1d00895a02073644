import { Badge, Stack, Text, Title } from "@mantine/core";
import type { ReactElement } from "react";
import { Modal } from "./dialog.tsx";
import { type AuditEntry, entryLabel, outcomeOf } from "../../../src/client/audit-actions.ts";
import { changesOf, decisionFacts } from "../../../src/client/audit-changes.ts";
import { Actor, kindLabel, Resource } from "../audit-names.tsx";
import { onTheWall } from "../format.ts";
import { Diff } from "./audit-diff.tsx";
import { Fact, Facts } from "./parts.tsx";
import { Block, CopyIcon } from "./secret.tsx";

interface EntryProps {
  readonly entry: AuditEntry;
}

const COLORS = { done: "teal", held: "yellow", refused: "red", failed: "red", unknown: "yellow" } as const;

export function Result({ entry }: EntryProps): ReactElement {
  const { kind, why, word } = outcomeOf(entry);
  return (
    <span className="audit-result">
      <Badge color={COLORS[kind]} className="state">
        {word}
      </Badge>
      {why === null ? null : <span className="break">{why}</span>}
    </span>
  );
}

const ACTOR_KINDS = {
  user: "Person",
  organization_key: "Organization key",
  agent: "Agent",
  system: null,
} as const;

export function AuditDetail({ entry, onClose }: EntryProps & { readonly onClose: () => void }): ReactElement {
  const { action, actor, at, from, hash, resource, result, sequence } = entry;
  const kind = ACTOR_KINDS[actor.type];
  return (
    <Modal opened onClose={onClose} title={entryLabel(entry)} size="lg">
      <Stack>
        <Facts>
          <Fact label="Result">
            <Result entry={entry} />
            {[result.status, result.code].some((each) => each !== null) ? (
              <span className="mono muted"> {[result.status, result.code].filter(Boolean).join(" ")}</span>
            ) : null}
          </Fact>
          <Fact label="By">
            {kind === null ? null : <span className="muted">{kind} </span>}
            <Actor entry={entry} />
          </Fact>
          <Fact label="On">
            <span className="muted">{kindLabel(resource.type)} </span>
            {resource.id === null ? null : <Resource entry={entry} />}
          </Fact>
          <Fact label="When">
            {onTheWall(at)} <span className="mono muted">{at}</span>
          </Fact>
          <Fact label="From where">
            {from === null ? "The service" : `${from.via} (${from.address ?? from.surface})`}
          </Fact>
        </Facts>
        <Changes entry={entry} />
        <Decision entry={entry} />
        <Facts>
          <Fact label="Entry">
            No. {sequence} <span className="mono muted">{action}</span>
          </Fact>
          <Fact label="Hash">
            <span className="mono">{hash}</span> <CopyIcon text={hash} label="Copy the hash" />
          </Fact>
        </Facts>
        <details>
          <summary>As stored</summary>
          <Block label="JSON" text={JSON.stringify(entry, null, 2)} />
        </details>
      </Stack>
    </Modal>
  );
}

const isNone = (value: unknown): boolean => value === null || value === undefined;

/** Change that an entry records; null if it records none. */
function Changes({ entry }: EntryProps): ReactElement | null {
  const { after, before } = entry;
  const outcome = outcomeOf(entry).kind;
  if (isNone(before) && isNone(after)) {
    if (outcome !== "refused" || !isNone(entry.decision)) return null;
    return <Text c="dimmed">It was refused, so nothing was changed.</Text>;
  }
  const changes = changesOf(before, after);
  const isChange = !isNone(before) && !isNone(after);
  const isPlan = outcome === "unknown" || outcome === "failed";
  const title = isPlan
    ? "What it was to change"
    : isChange
      ? "What changed"
      : isNone(before)
        ? "What was set"
        : "What it was";
  return (
    <section>
      <Title order={3} size="h4">
        {title}
      </Title>
      {changes.length === 0 ? (
        <Text c="dimmed">Nothing was changed: all values were as they are.</Text>
      ) : (
        <Diff changes={changes} isChange={isChange} />
      )}
    </section>
  );
}

function Decision({ entry: { decision } }: EntryProps): ReactElement | null {
  const facts = decisionFacts(decision);
  if (facts.length === 0) return null;
  return (
    <section>
      <Title order={3} size="h4">
        What was decided
      </Title>
      <Diff changes={facts} isChange={false} />
    </section>
  );
}
