import { Text, TextInput } from "@mantine/core";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactElement, useEffect, useRef } from "react";
import { AmountInput } from "./amount.tsx";
import { Written } from "./parts.tsx";

/** The shown children of a budget, and their names. */
export interface ChildNames {
  readonly nameOf: (id: string) => string;
  /** Called with the visible children, whose names may still have to be read. */
  readonly onVisible?: (ids: readonly string[]) => void;
  /** Search text and the matching ids; null for all. */
  readonly typed: string;
  readonly onTyped: (typed: string) => void;
  readonly found: ReadonlySet<string> | null;
}

interface RowsProps {
  readonly ids: readonly string[];
  readonly names: ChildNames;
  readonly values: Readonly<Record<string, string>>;
  readonly problems: Readonly<Record<string, string>>;
  readonly placeholder: string;
  readonly isReadOnly: boolean;
  readonly onChange: (id: string, value: string) => void;
}

/** Maximum rows drawn at once. In a longer list only the visible ones are drawn, in a scrolling frame. */
const DRAWN_MAX = 50;
const ROW_PX = 52;
const AROUND = 8;

export function BudgetRows({ ids, names, ...rows }: RowsProps): ReactElement {
  const shown = names.found === null ? ids : ids.filter((id) => names.found?.has(id));
  const isWindowed = shown.length > DRAWN_MAX;
  return (
    <>
      {ids.length <= DRAWN_MAX ? null : (
        <TextInput
          aria-label="Search by name"
          placeholder="Search by name"
          value={names.typed}
          onChange={({ currentTarget }) => names.onTyped(currentTarget.value)}
        />
      )}
      {shown.length === 0 ? (
        <Text size="sm" c="dimmed">
          No matches.
        </Text>
      ) : null}
      {isWindowed ? (
        <Windowed ids={shown} names={names} {...rows} />
      ) : (
        <Whole ids={shown} names={names} {...rows} />
      )}
    </>
  );
}

function Whole({ ids, names, ...rows }: RowsProps): ReactElement {
  useVisible(ids, names);
  return (
    <>
      {ids.map((id) => (
        <Row key={id} id={id} name={names.nameOf(id)} {...rows} />
      ))}
    </>
  );
}

function Windowed({ ids, names, ...rows }: RowsProps): ReactElement {
  const frame = useRef<HTMLDivElement>(null);
  const windowed = useVirtualizer({
    count: ids.length,
    getScrollElement: () => frame.current,
    estimateSize: () => ROW_PX,
    overscan: AROUND,
  });
  const drawn = windowed.getVirtualItems().map(({ index, start }) => ({ id: ids[index] ?? "", start }));
  useVisible(
    drawn.map(({ id }) => id),
    names,
  );
  return (
    <div ref={frame} className="budget-frame">
      <div style={{ height: windowed.getTotalSize() }} className="budget-sheet">
        {drawn.map(({ id, start }) => (
          <div key={id} className="budget-place" style={{ transform: `translateY(${start}px)` }}>
            <Row id={id} name={names.nameOf(id)} {...rows} />
          </div>
        ))}
      </div>
    </div>
  );
}

function useVisible(ids: readonly string[], { nameOf, onVisible }: ChildNames): void {
  const unnamed = ids.filter((id) => nameOf(id) === "").join(" ");
  useEffect(() => {
    if (unnamed !== "") onVisible?.(unnamed.split(" "));
  });
}

interface RowProps extends Omit<RowsProps, "ids" | "names"> {
  readonly id: string;
  readonly name: string;
}

const Row = ({ id, isReadOnly, name, onChange, placeholder, problems, values }: RowProps): ReactElement => (
  <div className="budget-row">
    <span className="clamp">{name === "" ? "…" : <Written text={name} />}</span>
    <AmountInput
      label=""
      ariaLabel={name === "" ? id : name}
      placeholder={placeholder}
      value={values[id] ?? ""}
      error={problems[id]}
      disabled={isReadOnly}
      onChange={(value) => onChange(id, value)}
    />
  </div>
);
