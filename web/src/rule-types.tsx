import {
  Chip,
  Group,
  Input,
  MultiSelect,
  NumberInput,
  Select,
  Switch,
  TagsInput,
  TextInput,
} from "@mantine/core";
import { type ReactElement, useState } from "react";
import { newUuid } from "../../src/client/uuid.ts";
import { OPTIONS_MAX } from "./containers.ts";
import { money, number, readAmount, typedOf } from "./format.ts";
import { AmountInput } from "./parts/amount.tsx";
import { categoryNamed, categoryOptions } from "./merchant-categories.ts";
import type { DraftOf, ParamsOf, Rule, RuleKind } from "./rules.ts";
import { RAIL_LIST } from "./rails.ts";

/** Presentation of each type of rule. A type that is missing in `TYPES` does not compile. */

interface FieldsProps<P> {
  readonly params: P;
  readonly problemAt: (param: string) => string | undefined;
  readonly onChange: (params: P) => void;
}

interface ShownType<P> {
  /** Label in the menu of new rules. */
  readonly label: string;
  /** Why a payment waits, in a phrase and in two or three words. */
  readonly flag: string;
  readonly shortFlag: string;
  readonly first: (timezone: string) => P;
  readonly sentence: (params: P) => string;
  readonly Fields: (props: FieldsProps<P>) => ReactElement | null;
}

const UNITS = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
] as const;

/** Returns `1 day` for 24 hours. */
export function spanOf(seconds: number): string {
  const [unit, size] = UNITS.find(([, each]) => seconds % each === 0 && seconds >= each) ?? UNITS[3];
  const count = seconds / size;
  return count === 1 ? (unit === "hour" ? "an hour" : `a ${unit}`) : `${number(count)} ${unit}s`;
}

const LIST = new Intl.ListFormat(undefined, { type: "disjunction" });
const ALL = new Intl.ListFormat(undefined, { type: "conjunction" });
const listed = (values: readonly string[]): string => (values.length === 0 ? "…" : LIST.format(values));

const DAYS: Readonly<Record<string, string>> = {
  mon: "Monday",
  tue: "Tuesday",
  wed: "Wednesday",
  thu: "Thursday",
  fri: "Friday",
  sat: "Saturday",
  sun: "Sunday",
};
const dayOf = (day: string): string => DAYS[day] ?? day;

const WORKDAYS = ["mon", "tue", "wed", "thu", "fri"] as const;

const TYPES: { readonly [T in RuleKind]: ShownType<ParamsOf<T>> } = {
  amount_above: {
    label: "Large amount",
    flag: "It is above an amount that the agent’s team or project has set.",
    shortFlag: "Large amount",
    first: () => ({ amountCents: 10_000 }),
    sentence: ({ amountCents }) =>
      `A payment above ${Number.isNaN(amountCents) ? "…" : money(amountCents)} requires approval.`,
    Fields: Amount,
  },
  new_recipient: {
    label: "New recipient",
    flag: "No payment of this agent to this recipient has gone through before.",
    shortFlag: "New recipient",
    first: () => ({}),
    sentence: () =>
      "A payment requires approval until an earlier one of the agent to the same recipient has gone through.",
    Fields: () => null,
  },
  recipient: {
    label: "Certain recipients",
    flag: "Payments to this recipient require approval.",
    shortFlag: "Listed recipient",
    first: () => ({ anyOf: [] }),
    sentence: ({ anyOf = [], noneOf }) =>
      `A payment to ${noneOf === undefined ? listed(anyOf) : `any recipient but ${listed(noneOf)}`} requires approval.`,
    Fields: Recipients,
  },
  merchant_category: {
    label: "Merchant categories",
    flag: "Payments to this merchant category require approval.",
    shortFlag: "Merchant category",
    first: () => ({ anyOf: [] }),
    sentence({ anyOf = [], noneOf }) {
      const which = noneOf === undefined ? "category" : "any category, or none, but";
      return `A payment to a merchant of ${which} ${listed((noneOf ?? anyOf).map(categoryNamed))} requires approval.`;
    },
    Fields: Categories,
  },
  rail: {
    label: "Rail",
    flag: "Payments by this rail require approval.",
    shortFlag: "Rail",
    first: () => ({ anyOf: ["wallet"] }),
    sentence: ({ anyOf }) => `A payment by ${listed(anyOf)} requires approval.`,
    Fields: Rails,
  },
  velocity: {
    label: "Many payments",
    flag: "The agent has made many payments in a short time.",
    shortFlag: "Many payments",
    first: () => ({ count: 10, windowSeconds: 3_600 }),
    sentence: ({ count, windowSeconds }) =>
      `An agent’s payment requires approval when it has made ${number(count)} already within ${spanOf(windowSeconds)}.`,
    Fields: Velocity,
  },
  time_window: {
    label: "Time of day",
    flag: "Payments at this time require approval.",
    shortFlag: "Unusual time",
    first: (timezone) => ({ timezone, days: [...WORKDAYS], from: "08:00", to: "18:00", outside: true }),
    sentence({ days, from, outside, timezone, to }) {
      const where = outside ? "outside of" : "within";
      return `A payment requires approval ${where} ${from} to ${to} on ${ALL.format(days.map(dayOf))} (${timezone}).`;
    },
    Fields: Window,
  },
  duplicate: {
    label: "Possible duplicate",
    flag: "It is like another payment of the agent shortly before: the same recipient and amount.",
    shortFlag: "Possible duplicate",
    first: () => ({ windowSeconds: 86_400 }),
    sentence: ({ windowSeconds }) =>
      `A payment requires approval when the agent has paid the same amount to the same recipient within ${spanOf(windowSeconds)}.`,
    Fields: ({ onChange, params }) => (
      <Span value={params.windowSeconds} onChange={(windowSeconds) => onChange({ windowSeconds })} />
    ),
  },
};

const isKind = (type: string): type is RuleKind => Object.hasOwn(TYPES, type);

/** Types of rules, as options of a menu. */
export const KINDS: readonly { readonly value: RuleKind; readonly label: string }[] = Object.keys(TYPES)
  .filter(isKind)
  .map((value) => ({ value, label: TYPES[value].label }));

/** Returns a new rule of a type, in the organization's time zone, or in the browser's if the organization has none. */
export const newRule = <T extends RuleKind>(type: T, timezone: string | null): DraftOf<T> => ({
  id: null,
  key: newUuid(),
  enabled: true,
  type,
  params: TYPES[type].first(timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone),
});

export const sentenceOfRule = <T extends RuleKind>(rule: DraftOf<T>): string =>
  TYPES[rule.type].sentence(rule.params);

/**
 * Whether a value of the audit log is a rule of a type that this page knows. Its parameters are those that the service
 * accepted.
 */
export const isRule = (value: Readonly<Record<string, unknown>>): value is Rule =>
  typeof value["type"] === "string" && isKind(value["type"]);

const THRESHOLD = {
  flag: "It is above what the agent may pay without asking.",
  shortFlag: "Above threshold",
} as const;

const flagsOf = (type: string): Pick<ShownType<never>, "flag" | "shortFlag"> => {
  if (isKind(type)) return TYPES[type];
  return type === "agent_threshold" ? THRESHOLD : { flag: type, shortFlag: type };
};

/** Returns why a payment waits, by the type of the rule that flagged it. */
export const flagOf = (type: string): string => flagsOf(type).flag;

/** Returns a flag in two or three words. */
export const shortFlagOf = (type: string): string => flagsOf(type).shortFlag;

interface RuleFieldsProps<T extends RuleKind> extends Pick<FieldsProps<never>, "problemAt"> {
  readonly rule: DraftOf<T>;
  readonly onChange: (rule: DraftOf<T>) => void;
}

export function RuleFields<T extends RuleKind>({
  onChange,
  problemAt,
  rule,
}: RuleFieldsProps<T>): ReactElement | null {
  const { Fields }: ShownType<ParamsOf<T>> = TYPES[rule.type];
  const { enabled, id, key, type } = rule;
  return (
    <Fields
      params={rule.params}
      problemAt={problemAt}
      onChange={(params) => onChange({ id, key, type, enabled, params })}
    />
  );
}

function Amount({ onChange, params, problemAt }: FieldsProps<ParamsOf<"amount_above">>): ReactElement {
  const [typed, setTyped] = useState(() => typedOf(params.amountCents));
  const amount = readAmount(typed);
  return (
    <AmountInput
      label=""
      ariaLabel="Amount"
      value={typed}
      error={amount.ok ? problemAt("amountCents") : amount.problem}
      onChange={(value) => {
        setTyped(value);
        const read = readAmount(value);
        onChange({ amountCents: read.ok ? read.cents : Number.NaN });
      }}
    />
  );
}

function Recipients({ onChange, params, problemAt }: FieldsProps<ParamsOf<"recipient">>): ReactElement {
  return (
    <>
      <TagsInput
        aria-label="Recipients"
        description="Names or addresses, one after another"
        value={[...entriesIn(params)]}
        error={problemAt("anyOf") ?? problemAt("noneOf")}
        onChange={(entries) => onChange(listedAs(params, entries))}
      />
      <AllBut params={params} onChange={onChange} />
    </>
  );
}

type ListParams = ParamsOf<"recipient" | "merchant_category">;

const entriesIn = ({ anyOf = [], noneOf }: ListParams): readonly string[] => noneOf ?? anyOf;

const listedAs = ({ noneOf }: ListParams, entries: string[]): ListParams =>
  noneOf === undefined ? { anyOf: entries } : { noneOf: entries };

/** Switch that inverts a list. */
function AllBut({ onChange, params }: Omit<FieldsProps<ListParams>, "problemAt">): ReactElement {
  return (
    <Switch
      label="All but these"
      checked={params.noneOf !== undefined}
      onChange={({ currentTarget }) => {
        const entries = [...entriesIn(params)];
        onChange(currentTarget.checked ? { noneOf: entries } : { anyOf: entries });
      }}
    />
  );
}

function Categories({
  onChange,
  params,
  problemAt,
}: FieldsProps<ParamsOf<"merchant_category">>): ReactElement {
  const [search, setSearch] = useState("");
  return (
    <>
      <MultiSelect
        aria-label="Categories"
        description="By name, or by four-digit code (MCC)"
        searchable
        searchValue={search}
        onSearchChange={setSearch}
        limit={OPTIONS_MAX}
        nothingFoundMessage="No such category. You can type a four-digit code."
        data={categoryOptions([...entriesIn(params), search])}
        value={[...entriesIn(params)]}
        error={problemAt("anyOf") ?? problemAt("noneOf")}
        onChange={(entries) => onChange(listedAs(params, entries))}
      />
      <AllBut params={params} onChange={onChange} />
    </>
  );
}

function Rails({ onChange, params, problemAt }: FieldsProps<ParamsOf<"rail">>): ReactElement {
  return (
    <Input.Wrapper error={problemAt("anyOf")}>
      <Chip.Group
        multiple
        value={[...params.anyOf]}
        onChange={(values) =>
          onChange({ anyOf: RAIL_LIST.flatMap(({ value }) => (values.includes(value) ? [value] : [])) })
        }
      >
        <Group gap="xs">
          {RAIL_LIST.map(({ label, value }) => (
            <Chip key={value} value={value}>
              {label}
            </Chip>
          ))}
        </Group>
      </Chip.Group>
    </Input.Wrapper>
  );
}

/** Offered windows. */
const SPANS = [
  { value: "60", label: "a minute" },
  { value: "600", label: "10 minutes" },
  { value: "3600", label: "an hour" },
  { value: "21600", label: "6 hours" },
  { value: "86400", label: "a day" },
  { value: "604800", label: "7 days" },
  { value: "2592000", label: "30 days" },
];

function Velocity({ onChange, params, problemAt }: FieldsProps<ParamsOf<"velocity">>): ReactElement {
  return (
    <Group>
      <NumberInput
        aria-label="Payments"
        w={120}
        min={0}
        allowDecimal={false}
        value={params.count}
        error={problemAt("count")}
        onChange={(count) => onChange({ ...params, count: Number(count) })}
      />
      <Span
        value={params.windowSeconds}
        onChange={(windowSeconds) => onChange({ ...params, windowSeconds })}
      />
    </Group>
  );
}

interface SpanProps {
  readonly value: number;
  readonly onChange: (seconds: number) => void;
}

function Span({ onChange, value }: SpanProps): ReactElement {
  const own = String(value);
  const data = SPANS.some((span) => span.value === own)
    ? SPANS
    : [...SPANS, { value: own, label: `${own} seconds` }];
  return (
    <Select
      aria-label="Within"
      w={150}
      data={data}
      value={own}
      allowDeselect={false}
      onChange={(chosen) => onChange(Number(chosen))}
    />
  );
}

const WEEK = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
const SHORT = { mon: "Mo", tue: "Tu", wed: "We", thu: "Th", fri: "Fr", sat: "Sa", sun: "Su" } as const;

function Window({ onChange, params, problemAt }: FieldsProps<ParamsOf<"time_window">>): ReactElement {
  const set = (change: Partial<typeof params>): void => onChange({ ...params, ...change });
  return (
    <Group gap="sm" align="flex-end">
      <TextInput
        label="From"
        w={90}
        placeholder="08:00"
        value={params.from}
        error={problemAt("from")}
        onChange={({ currentTarget }) => set({ from: currentTarget.value })}
      />
      <TextInput
        label="To"
        w={90}
        placeholder="18:00"
        value={params.to}
        error={problemAt("to")}
        onChange={({ currentTarget }) => set({ to: currentTarget.value })}
      />
      <TextInput
        label="Time zone"
        w={190}
        value={params.timezone}
        error={problemAt("timezone")}
        onChange={({ currentTarget }) => set({ timezone: currentTarget.value })}
      />
      <Switch
        label="Outside of it"
        checked={params.outside}
        onChange={({ currentTarget }) => set({ outside: currentTarget.checked })}
      />
      <Input.Wrapper error={problemAt("days")}>
        <Chip.Group
          multiple
          value={[...params.days]}
          onChange={(values) => set({ days: WEEK.filter((day) => values.includes(day)) })}
        >
          <Group gap={4}>
            {WEEK.map((day) => (
              <Chip key={day} value={day} size="xs">
                {SHORT[day]}
              </Chip>
            ))}
          </Group>
        </Chip.Group>
      </Input.Wrapper>
    </Group>
  );
}
