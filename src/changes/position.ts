import type { Timestamp } from "mongodb";

/**
 * A position in the order of all changes of the database: MongoDB's cluster time, and its number among those of the same time, as
 * texts that sort in that order. The same in every process.
 */
export type Position = string;

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, "0");

/** `number`: from 1 among the changes of one time; 0 comes before all of them, 65,535 behind. */
export const positionAt = ({ i, t }: Pick<Timestamp, "i" | "t">, number: number): Position =>
  hex(t, 8) + hex(i, 8) + hex(Math.min(number, 0xffff), 4);

/** Behind everything of that time. */
export const endOf = (time: Pick<Timestamp, "i" | "t">): Position => positionAt(time, 0xffff);

/** The last place before this one. */
export function before(position: Position): Position {
  const number = Number.parseInt(position.slice(16), 16);
  return position.slice(0, 16) + hex(Math.max(0, number - 1), 4);
}

/** Returns a client's position; null for text that is no position. */
export const positionIn = (text: string): Position | null => (/^[0-9a-f]{20}$/.test(text) ? text : null);
