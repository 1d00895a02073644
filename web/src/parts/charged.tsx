import { Badge, Group, Tooltip } from "@mantine/core";
import type { ReactElement } from "react";
import { money, titled } from "../format.ts";
import type { Transaction } from "../words.ts";
import { Fact, Money, State } from "./parts.tsx";

/** Shows what a network did with a payment beyond charging the requested amount. */

type Charged = Pick<Transaction, "amounts" | "breach" | "currency" | "stage" | "status">;

interface Mark {
  readonly label: string;
  readonly why: string;
  readonly color: "gray" | "grape" | "orange" | "red";
}

function marksOf({ amounts, breach, currency, stage, status }: Charged): readonly Mark[] {
  const { capturedCents, creditedCents, requestedCents } = amounts;
  const of = `${money(capturedCents, currency)} charged of ${money(requestedCents, currency)} asked for`;
  const marks: Mark[] = [];
  if (breach !== null) marks.push({ label: "Over limit", why: breachText(breach, currency), color: "red" });
  else if (capturedCents > requestedCents) marks.push({ label: "Charged more", why: of, color: "orange" });
  if (capturedCents > 0 && capturedCents < requestedCents)
    marks.push({ label: "Partial", why: of, color: "gray" });
  if (creditedCents > 0 && status === "approved")
    marks.push({
      label: "Part refunded",
      why: `${money(creditedCents, currency)} came back`,
      color: "grape",
    });
  if (stage === "authorized")
    marks.push({ label: "Authorized", why: "The merchant may charge it, and has not yet.", color: "gray" });
  return marks;
}

const LIMITS = {
  per_transaction: "limit per transaction",
  budget: "budget",
  daily_spend: "daily limit",
  cap: "budget",
  day: "limit per day",
  week: "limit per week",
  month: "limit per month",
  quarter: "limit per quarter",
  year: "limit per year",
} as const;

const breachText = (breach: NonNullable<Transaction["breach"]>, currency: string): string =>
  breach
    .map(
      ({ level, limit, overCents }) => `${titled(level)}’s ${LIMITS[limit]} by ${money(overCents, currency)}`,
    )
    .join(", ");

/** State of a transaction, marked if its network deviated from the request. */
export function ChargedState({ transaction }: { readonly transaction: Charged }): ReactElement {
  return (
    <Group gap={4}>
      <State of={transaction.status} />
      {marksOf(transaction).map(({ color, label, why }) => (
        <Tooltip key={label} label={why}>
          <Badge color={color} variant="outline" data-mark={label}>
            {label}
          </Badge>
        </Tooltip>
      ))}
    </Group>
  );
}

/** Amounts of a transaction, if they differ from the requested amount. */
export function ChargedFacts({ transaction }: { readonly transaction: Charged }): ReactElement | null {
  const { amounts, breach, currency, stage } = transaction;
  const { authorizedCents, capturedCents, creditedCents, requestedCents } = amounts;
  const isPlain = capturedCents === requestedCents && creditedCents === 0 && breach === null;
  if (isPlain || stage === null) return null;
  const rows = [
    ["Asked for", requestedCents],
    ["Authorized", authorizedCents],
    ["Charged", capturedCents],
    ...(creditedCents === 0 ? [] : [["Came back", creditedCents] as const]),
  ] as const;
  return (
    <>
      {rows.map(([label, cents]) => (
        <Fact key={label} label={label}>
          <Money cents={cents} currency={currency} />
        </Fact>
      ))}
      {breach === null ? null : (
        <Fact label="Limits exceeded by the network">
          {breachText(breach, currency)}. It was charged without another decision, and counts in full.
        </Fact>
      )}
    </>
  );
}
