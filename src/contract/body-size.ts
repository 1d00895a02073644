/** Maximum request body sizes in bytes. A `large` body can name every agent of the largest team. */
export const BODY_BYTES_MAX = { usual: 256 * 1_024, large: 2 * 1_024 * 1_024 } as const;

export type BodySize = keyof typeof BODY_BYTES_MAX;
