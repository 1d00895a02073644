import type { StreamEventName } from "../contract/stream.ts";
import type { Position } from "./position.ts";

/** Server-sent events as text. JSON has no line end of its own, so that data is one line. */
export const eventText = (name: StreamEventName, data: object, id: Position | null = null): string =>
  `event: ${name}\n${id === null ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;

/** Reconnection delay for a client whose stream has ended; random, so that clients do not return together. */
export const retryText = (): string => `retry: ${String(500 + Math.floor(Math.random() * 2_500))}\n\n`;
