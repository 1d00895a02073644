import type { StreamEventName } from "../contract/stream.ts";
import type { Position } from "./position.ts";

/** Formats a server-sent event. JSON contains no line breaks, so the data is one line. */
export const eventText = (name: StreamEventName, data: object, id: Position | null = null): string =>
  `event: ${name}\n${id === null ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;

/** Returns the reconnection delay for clients of an ended stream; random, so that they do not return together. */
export const retryText = (): string => `retry: ${String(500 + Math.floor(Math.random() * 2_500))}\n\n`;
