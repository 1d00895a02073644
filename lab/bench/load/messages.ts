/** A request that is sent over and over; a body without an idempotency key gets a fresh one each time. */
export interface RequestTemplate {
  /** POST unless it is said. */
  readonly method?: "GET";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>> | null;
}

export interface Load {
  readonly port: number;
  readonly connections: number;
  readonly seconds: number;
  /** Sent in turn, by all connections together. */
  readonly templates: readonly RequestTemplate[];
}

/** No load is longer, whatever was asked for. */
export const LOAD_SECONDS_MAX = 60;
export const LOAD_REQUESTS_MAX = 200_000;
export const REQUEST_MS = 15_000;
