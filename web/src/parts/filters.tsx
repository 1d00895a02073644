import { Button, Select, Text, TextInput, type TextProps } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { type ReactElement, type ReactNode, useEffect, useRef, useState } from "react";
import { OPTIONS_MAX, type Project, type Team, useProjects, useTeams } from "../containers.ts";
import { asWritten, readAmount, typedOf } from "../format.ts";
import { AmountInput } from "./amount.tsx";

/** Pause in typing before a search. */
const TYPING_PAUSE_MS = 300;

interface IdProps {
  readonly value: string | null;
  readonly onChange: (id: string | null) => void;
}

interface ContainerProps extends IdProps {
  readonly name: "Team" | "Project";
  readonly containers: readonly (Project | Team)[];
}

const ContainerSelect = ({ containers, name, ...field }: ContainerProps): ReactElement => (
  <Select
    {...field}
    aria-label={name}
    placeholder={`Any ${name.toLowerCase()}`}
    clearable
    searchable
    limit={OPTIONS_MAX}
    data={containers.map((each) => ({ value: each.id, label: asWritten(each.name) }))}
  />
);

export function TeamSelect(props: IdProps): ReactElement {
  const { data = [] } = useTeams();
  return <ContainerSelect {...props} name="Team" containers={data} />;
}

export function ProjectSelect(props: IdProps): ReactElement {
  const { data = [] } = useProjects();
  return <ContainerSelect {...props} name="Project" containers={data} />;
}

interface SearchProps {
  readonly label: string;
  readonly placeholder: string;
  readonly value: string;
  readonly onChange: (search: string) => void;
}

/** Field whose text is searched for once typing pauses. */
export function SearchField({ label, onChange, placeholder, value }: SearchProps): ReactElement {
  const [typed, setTyped] = useState(value);
  const searched = useRef(value);
  useEffect(() => {
    if (value === searched.current) return;
    searched.current = value;
    setTyped(value);
  }, [value]);
  useEffect(() => {
    const text = typed.trim();
    if (text === searched.current) return;
    const timer = setTimeout(() => {
      searched.current = text;
      onChange(text);
    }, TYPING_PAUSE_MS);
    return () => clearTimeout(timer);
  });
  return (
    <TextInput
      type="search"
      className="search"
      aria-label={label}
      placeholder={placeholder}
      maxLength={200}
      value={typed}
      onChange={({ currentTarget }) => setTyped(currentTarget.value)}
    />
  );
}

interface AmountProps {
  readonly name: string;
  readonly cents: number | null;
  readonly onChange: (cents: number | null) => void;
}

const centsIn = (typed: string): ReturnType<typeof readAmount> | null =>
  typed.trim() === "" ? null : readAmount(typed);

/** Minimum or maximum amount, applied as soon as the text is an amount. */
export function AmountFilter({ cents, name, onChange }: AmountProps): ReactElement {
  const [typed, setTyped] = useState(() => typedOf(cents));
  const read = centsIn(typed);
  useEffect(() => {
    setTyped((text) => {
      const now = centsIn(text);
      const isSame = now === null ? cents === null : now.ok && now.cents === cents;
      return isSame ? text : typedOf(cents);
    });
  }, [cents]);
  return (
    <AmountInput
      label={name}
      ariaLabel={`Amount ${name.toLowerCase()}`}
      placeholder={name}
      value={typed}
      error={read?.ok === false ? read.problem : undefined}
      onChange={(text) => {
        setTyped(text);
        const now = centsIn(text);
        if (now === null || now.ok) onChange(now === null ? null : now.cents);
      }}
    />
  );
}

interface BarProps {
  readonly search?: ReactNode;
  /** Number of active filters behind the button. */
  readonly count: number;
  readonly children: ReactNode;
  readonly isPadded?: boolean;
}

/** Row of filters. On a phone, all except the search are behind a button. */
export function FilterBar({ children, count, isPadded = false, search }: BarProps): ReactElement {
  const [isOpen, { toggle }] = useDisclosure(false);
  return (
    <div className={isPadded ? "filters pad" : "filters"} data-folded={isOpen ? undefined : true}>
      {search}
      <Button variant="default" className="filters-toggle" aria-expanded={isOpen} onClick={toggle}>
        {count === 0 ? "Filters" : `Filters (${String(count)})`}
      </Button>
      {children}
    </div>
  );
}

interface DaysProps {
  /** A date, such as 2026-03-29. */
  readonly from: string | null;
  readonly to: string | null;
  readonly onChange: (change: { readonly from?: string | null; readonly to?: string | null }) => void;
}

export const DayFields = ({ from, onChange, to }: DaysProps): ReactElement => (
  <>
    <DayField name="First day" shown="From" value={from} onChange={(day) => onChange({ from: day })} />
    <DayField name="Last day" shown="To" value={to} onChange={(day) => onChange({ to: day })} />
  </>
);

interface DayProps {
  readonly name: string;
  readonly shown: string;
  readonly value: string | null;
  readonly onChange: (day: string | null) => void;
}

const DayField = ({ name, onChange, shown, value }: DayProps): ReactElement => (
  <TextInput
    type="date"
    aria-label={name}
    leftSection={
      <Text size="sm" c="dimmed" aria-hidden="true">
        {shown}
      </Text>
    }
    leftSectionWidth={52}
    value={value ?? ""}
    onChange={({ currentTarget }) => onChange(currentTarget.value === "" ? null : currentTarget.value)}
  />
);

type NoteProps = { readonly timezone: string } & Pick<TextProps, "px" | "pb">;

export const DaysNote = ({ timezone, ...space }: NoteProps): ReactElement => (
  <Text size="xs" c="dimmed" {...space}>
    Days are those of {timezone}.
  </Text>
);
