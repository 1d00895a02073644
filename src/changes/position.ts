import type { Timestamp } from "mongodb";

/**
 * A position in the order of all changes of the database, the same in every process: MongoDB's cluster time and the
 * number among changes of the same time, as text that sorts in that order.
 */
export type Position = string;

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, "0");

/** `number` counts the changes of one time from 1; 0 precedes all of them, 65,535 follows all. */
export const positionAt = ({ i, t }: Pick<Timestamp, "i" | "t">, number: number): Position =>
  hex(t, 8) + hex(i, 8) + hex(Math.min(number, 0xffff), 4);

/** Returns the position after all changes of a time. */
export const endOf = (time: Pick<Timestamp, "i" | "t">): Position => positionAt(time, 0xffff);

/** Returns the position just before another. */
export function before(position: Position): Position {
  const number = Number.parseInt(position.slice(16), 16);
  return position.slice(0, 16) + hex(Math.max(0, number - 1), 4);
}

/** Returns a client's position; null for text that is no position. */
export const positionIn = (text: string): Position | null => (/^[0-9a-f]{20}$/.test(text) ? text : null);
