import { VisuallyHidden } from "@mantine/core";
import { Fragment, type ReactElement } from "react";
import type { AuditChange, AuditField, AuditValue } from "../../../src/client/audit-changes.ts";
import { NamedRecord } from "../audit-names.tsx";
import { number, onTheWall, titled } from "../format.ts";
import { POLICY_FIELDS } from "../policy.ts";
import { isRule, sentenceOfRule, shortFlagOf, spanOf } from "../rule-types.tsx";
import { Fact, Facts, Money, Written } from "./parts.tsx";

/** Maximum elements of a list, and fields of a change, that are drawn. */
const DRAWN_MAX = 50;
const ROWS_MAX = 200;

interface FieldWords {
  readonly label: string;
  /** Text shown for null. */
  readonly none: string | null;
}

const FIELDS: Readonly<Record<string, FieldWords>> = {
  ...Object.fromEntries(POLICY_FIELDS.map(({ label, name, none }) => [name, { label, none }])),
  capCents: { label: "Cap", none: "No cap" },
  scopes: { label: "Scopes", none: "All" },
  dailyCreateLimit: { label: "Creates per day", none: "Default" },
  active: { label: "Active agents", none: null },
  paused: { label: "Paused agents", none: null },
  isActive: { label: "Active", none: null },
  flaggedByRuleTypes: { label: "Flagged by", none: null },
  walletTargetCents: { label: "Wallet kept at", none: "Not kept" },
  walletOwner: { label: "Owner of wallets", none: null },
};

const words = (name: string): string =>
  titled(
    name
      .replace(/(?:Cents|Seconds|Ids?)$/, "")
      .replaceAll(/([A-Z])/g, " $1")
      .toLowerCase(),
  );
const labelOf = (path: readonly string[]): string =>
  path.map((name) => (Object.hasOwn(FIELDS, name) ? FIELDS[name]?.label : words(name))).join(" › ");
const noneOf = (name: string): string => (Object.hasOwn(FIELDS, name) ? FIELDS[name]?.none : null) ?? "None";

interface DiffProps {
  readonly changes: readonly AuditChange[];
  /** Whether values are marked as old and new. Otherwise they are shown as facts. */
  readonly isChange: boolean;
}

/** Shows a change field by field, old values before new ones. */
export const Diff = ({ changes, isChange }: DiffProps): ReactElement => (
  <Facts>
    {changes.slice(0, ROWS_MAX).map(({ is, of, path, was }) => {
      const field = path.at(-1) ?? "";
      // The list that contains a record is obvious, so it is left out.
      const label = labelOf(of === null ? path : path.slice(1));
      return (
        <Fact
          key={`${path.join(".")} ${of?.id ?? ""}`}
          label={
            of === null ? (
              label
            ) : (
              <>
                {label} of <NamedRecord of={of} />
              </>
            )
          }
        >
          <ul className="diff">
            <Lines values={was} field={field} side={isChange ? "was" : null} />
            <Lines values={is} field={field} side={isChange ? "is" : null} />
          </ul>
        </Fact>
      );
    })}
    {changes.length > ROWS_MAX ? (
      <Fact label="More">{number(changes.length - ROWS_MAX)} further fields</Fact>
    ) : null}
  </Facts>
);

interface LinesProps {
  readonly values: readonly AuditValue[];
  readonly field: string;
  readonly side: "was" | "is" | null;
}

const SIDES = {
  was: { sign: "−", said: "Old: " },
  is: { sign: "+", said: "New: " },
} as const;

const Lines = ({ field, side, values }: LinesProps): ReactElement => (
  <>
    {values.slice(0, DRAWN_MAX).map((value, index) => (
      <li key={index} data-side={side}>
        {side === null ? null : (
          <>
            <span aria-hidden="true">{SIDES[side].sign} </span>
            <VisuallyHidden>{SIDES[side].said}</VisuallyHidden>
          </>
        )}
        <Value field={field} value={value} />
      </li>
    ))}
    {values.length > DRAWN_MAX ? <li>and {number(values.length - DRAWN_MAX)} more</li> : null}
  </>
);

/** Fields whose values come from a fixed vocabulary, such as `card`. */
const NAMED: ReadonlySet<string> = new Set([
  "lifecycle",
  "outcome",
  "plan",
  "rail",
  "role",
  "scopeType",
  "state",
  "type",
]);

function textOf(field: string, text: string): string {
  if (field === "flaggedByRuleTypes") return shortFlagOf(text);
  return NAMED.has(field) ? titled(text) : text;
}

function Value({ field, value }: AuditField): ReactElement {
  switch (value.kind) {
    case "none":
      return <>{noneOf(field)}</>;
    case "hidden":
      return <>Not shown</>;
    case "text":
      return <Written text={textOf(field, value.text)} />;
    case "number":
      return <span className="figure">{number(value.value)}</span>;
    case "flag":
      return <>{value.value ? "Yes" : "No"}</>;
    case "money":
      return <Money cents={value.cents} />;
    case "span":
      return <>{spanOf(value.seconds)}</>;
    case "time":
      return <time dateTime={value.iso}>{onTheWall(value.iso)}</time>;
    case "reference":
      return <NamedRecord of={value.of} />;
    case "rule":
      return <RuleText rule={value.rule} />;
    case "group":
      return <Group fields={value.fields} of={field} />;
  }
}

function RuleText({ rule }: { readonly rule: Readonly<Record<string, unknown>> }): ReactElement {
  const text = isRule(rule) ? sentenceOfRule({ ...rule, key: rule.id }) : JSON.stringify(rule);
  return (
    <>
      <Written text={text} />
      {rule["enabled"] === false ? <span className="muted"> (off)</span> : null}
    </>
  );
}

/** Shows the fields of a value in one line. Elements of a list have no names of their own. */
const Group = ({
  fields,
  of,
}: {
  readonly fields: readonly AuditField[];
  readonly of: string;
}): ReactElement =>
  fields.length === 0 ? (
    <>None</>
  ) : (
    <>
      {fields.slice(0, DRAWN_MAX).map(({ field, value }, index) => (
        <Fragment key={index}>
          {index === 0 ? "" : ", "}
          {field === of ? "" : `${labelOf([field])}: `}
          <Value field={field} value={value} />
        </Fragment>
      ))}
      {fields.length > DRAWN_MAX ? ` and ${number(fields.length - DRAWN_MAX)} more` : ""}
    </>
  );
