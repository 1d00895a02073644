import { useWindowVirtualizer } from "@tanstack/react-virtual";
import {
  memo,
  type MouseEvent,
  type ReactElement,
  type ReactNode,
  useLayoutEffect,
  useRef,
  useState,
} from "react";

/** Maximum rows drawn at once. In a longer table only the visible rows and some around them are drawn. */
const DRAWN_MAX = 100;
const AROUND = 10;
const ROW_PX = 62;

interface TableProps<T> {
  readonly items: readonly T[];
  readonly keyOf: (item: T) => string | number;
  /** Cells of a row. A new function renders all rows again. */
  readonly cells: (item: T) => ReactNode;
  /** Opens the item of a clicked row; a stable function. One cell has a link, for keyboard users. */
  readonly onOpen?: (item: T) => void;
  readonly head: ReactNode;
  readonly columns: number;
}

/** Table that draws only visible rows, however many there are. On a phone, rows are stacked. */
export function Table<T>({ head, items, ...rows }: TableProps<T>): ReactElement {
  const isWindowed = items.length > DRAWN_MAX;
  return (
    <table className="rows stacked" aria-rowcount={isWindowed ? items.length + 1 : undefined}>
      <thead>
        <tr>{head}</tr>
      </thead>
      {isWindowed ? <Windowed items={items} {...rows} /> : <Whole items={items} {...rows} />}
    </table>
  );
}

type RowsProps<T> = Omit<TableProps<T>, "head">;

const Whole = <T,>({ items, keyOf, columns: _columns, ...row }: RowsProps<T>): ReactElement => (
  <tbody>
    {items.map((item) => (
      <Row key={keyOf(item)} item={item} {...row} />
    ))}
  </tbody>
);

function Windowed<T>({ columns, items, keyOf, ...row }: RowsProps<T>): ReactElement {
  const body = useRef<HTMLTableSectionElement>(null);
  const [scrollMargin, setScrollMargin] = useState(0);
  // Contents above the rows may grow, for example a chart that has loaded.
  useLayoutEffect(() => {
    const top = (body.current?.getBoundingClientRect().top ?? 0) + window.scrollY;
    if (Math.abs(top - scrollMargin) > 1) setScrollMargin(top);
  });
  const rows = useWindowVirtualizer({
    count: items.length,
    estimateSize: () => ROW_PX,
    getItemKey: (index) => {
      const item = items[index];
      return item === undefined ? index : keyOf(item);
    },
    overscan: AROUND,
    scrollMargin,
  });
  const drawn = rows.getVirtualItems();
  const above = (drawn[0]?.start ?? scrollMargin) - scrollMargin;
  const below = rows.getTotalSize() - ((drawn.at(-1)?.end ?? scrollMargin) - scrollMargin);
  return (
    <tbody ref={body}>
      <Gap columns={columns} height={above} />
      {drawn.map(({ index, key }) => {
        const item = items[index];
        if (item === undefined) return null;
        return <Row key={String(key)} item={item} {...row} index={index} measure={rows.measureElement} />;
      })}
      <Gap columns={columns} height={below} />
    </tbody>
  );
}

interface RowProps<T> extends Pick<TableProps<T>, "cells" | "onOpen"> {
  readonly item: T;
  readonly index?: number;
  readonly measure?: (row: HTMLTableRowElement | null) => void;
}

/** Whether a click is meant for the row: not for a control in it, and not the end of a text selection. */
const isOfRow = ({ target }: MouseEvent): boolean =>
  target instanceof Element &&
  target.closest("a, button, input") === null &&
  getSelection()?.type !== "Range";

function PlainRow<T>({ cells, index, item, measure, onOpen }: RowProps<T>): ReactElement {
  // The head is the first row.
  const place = index === undefined ? {} : { "data-index": index, "aria-rowindex": index + 2 };
  return (
    <tr
      ref={measure}
      {...place}
      {...(onOpen === undefined
        ? {}
        : { className: "opens", onClick: (event: MouseEvent) => isOfRow(event) && onOpen(item) })}
    >
      {cells(item)}
    </tr>
  );
}

/** Memoized, so that scrolling renders only the new rows. */
const Row = memo(PlainRow) as typeof PlainRow;

const Gap = ({ columns, height }: { readonly columns: number; readonly height: number }): ReactNode =>
  height <= 0 ? null : (
    <tr className="gap" aria-hidden="true">
      <td colSpan={columns} style={{ height }} />
    </tr>
  );
