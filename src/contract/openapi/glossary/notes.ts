export interface Note {
  readonly description: string;
  readonly example?: unknown;
}

export const EXAMPLE_ID = "01a2068b-40a6-73a5-aa10-002b054e3cb7";
export const ULID = "01K4Q7ZJ8X3V5W9T2R6N0M1C4D";
export const CREATED = "2026-03-14T09:26:53.589Z";
export const LATER = "2026-03-14T09:41:53.589Z";
export const ADDRESS = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
export const HASH = `0x${"3f".repeat(32)}`;
export const DIGEST = "3f".repeat(32);
export const DEVICE_TOKEN = `${EXAMPLE_ID}.AAAAAAAAAAAAAAAAAAAAAA-1773480413.${"A".repeat(43)}`;

export const note = (description: string, example?: unknown): Note =>
  example === undefined ? { description } : { description, example };
export const cents = (description: string, example: number): Note =>
  note(`${description}, in integer cents.`, example);
