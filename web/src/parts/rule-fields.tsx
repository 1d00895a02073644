import { Chip, Group, NumberInput, Select, Switch, TagsInput, TextInput } from "@mantine/core";
import { type ReactElement, useState } from "react";
import { centsOf, typedOf } from "../format.ts";
import type { Draft } from "../rules.ts";
import { AmountInput } from "./amount.tsx";

interface FieldsProps<T extends Draft["type"]> {
  readonly rule: Extract<Draft, { readonly type: T }>;
  readonly onChange: (rule: Draft) => void;
}

/** What is set of a rule, by its type. */
export function RuleFields({
  onChange,
  rule,
}: {
  readonly rule: Draft;
  readonly onChange: (rule: Draft) => void;
}): ReactElement | null {
  switch (rule.type) {
    case "new_recipient":
      return null;
    case "amount_above":
      return <Amount rule={rule} onChange={onChange} />;
    case "recipient":
    case "merchant_category":
      return <Names rule={rule} onChange={onChange} />;
    case "rail":
      return <Rails rule={rule} onChange={onChange} />;
    case "velocity":
      return (
        <Group>
          <NumberInput
            aria-label="Payments"
            w={120}
            min={0}
            allowDecimal={false}
            value={rule.params.count}
            onChange={(count) => onChange({ ...rule, params: { ...rule.params, count: Number(count) } })}
          />
          <Span rule={rule} onChange={onChange} />
        </Group>
      );
    case "duplicate":
      return <Span rule={rule} onChange={onChange} />;
    case "time_window":
      return <Window rule={rule} onChange={onChange} />;
  }
}

function Amount({ onChange, rule }: FieldsProps<"amount_above">): ReactElement {
  const [typed, setTyped] = useState(() => typedOf(rule.params.amountCents));
  return (
    <AmountInput
      label=""
      ariaLabel="Amount"
      value={typed}
      error={centsOf(typed) === null ? "An amount like 250 or 99.50." : undefined}
      onChange={(value) => {
        setTyped(value);
        onChange({ ...rule, params: { amountCents: centsOf(value) ?? Number.NaN } });
      }}
    />
  );
}

const isCategory = (value: string): boolean => /^[0-9]{4}$/.test(value);

function Names({ onChange, rule }: FieldsProps<"recipient" | "merchant_category">): ReactElement {
  const isRecipient = rule.type === "recipient";
  return (
    <TagsInput
      aria-label={isRecipient ? "Recipients" : "Categories"}
      description={isRecipient ? "Names or addresses, one after another" : "Four-digit codes (MCC)"}
      value={[...rule.params.anyOf]}
      onChange={(values) =>
        onChange({ ...rule, params: { anyOf: isRecipient ? values : values.filter(isCategory) } })
      }
    />
  );
}

const RAILS = ["card", "wallet"] as const;

function Rails({ onChange, rule }: FieldsProps<"rail">): ReactElement {
  return (
    <Chip.Group
      multiple
      value={[...rule.params.anyOf]}
      onChange={(values) =>
        onChange({ ...rule, params: { anyOf: RAILS.filter((rail) => values.includes(rail)) } })
      }
    >
      <Group gap="xs">
        <Chip value="card">Card</Chip>
        <Chip value="wallet">Wallet</Chip>
      </Group>
    </Chip.Group>
  );
}

const SPANS = [
  { value: "60", label: "a minute" },
  { value: "600", label: "10 minutes" },
  { value: "3600", label: "an hour" },
  { value: "21600", label: "6 hours" },
  { value: "86400", label: "a day" },
  { value: "604800", label: "7 days" },
  { value: "2592000", label: "30 days" },
];

function Span({ onChange, rule }: FieldsProps<"velocity" | "duplicate">): ReactElement {
  const own = String(rule.params.windowSeconds);
  const data = SPANS.some(({ value }) => value === own)
    ? SPANS
    : [...SPANS, { value: own, label: `${own} seconds` }];
  return (
    <Select
      aria-label="Within"
      w={150}
      data={data}
      value={own}
      allowDeselect={false}
      onChange={(value) => {
        const windowSeconds = Number(value);
        if (rule.type === "velocity") onChange({ ...rule, params: { ...rule.params, windowSeconds } });
        else onChange({ ...rule, params: { windowSeconds } });
      }}
    />
  );
}

const WEEK = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
const SHORT = { mon: "Mo", tue: "Tu", wed: "We", thu: "Th", fri: "Fr", sat: "Sa", sun: "Su" } as const;

function Window({ onChange, rule }: FieldsProps<"time_window">): ReactElement {
  const { params } = rule;
  const set = (change: Partial<typeof params>): void =>
    onChange({ ...rule, params: { ...params, ...change } });
  return (
    <Group gap="sm" align="flex-end">
      <TextInput
        label="From"
        w={90}
        placeholder="08:00"
        value={params.from}
        onChange={({ currentTarget }) => set({ from: currentTarget.value })}
      />
      <TextInput
        label="To"
        w={90}
        placeholder="18:00"
        value={params.to}
        onChange={({ currentTarget }) => set({ to: currentTarget.value })}
      />
      <TextInput
        label="Time zone"
        w={190}
        value={params.timezone}
        onChange={({ currentTarget }) => set({ timezone: currentTarget.value })}
      />
      <Switch
        label="Outside of it"
        checked={params.outside}
        onChange={({ currentTarget }) => set({ outside: currentTarget.checked })}
      />
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
    </Group>
  );
}
