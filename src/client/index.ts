/** Exports of the package as `agent-spending-control/client`. */
export {
  addressOfFile,
  type Client,
  type ClientOptions,
  createClient,
  type Credential,
  RefusedError,
  valueOf,
} from "./client.ts";
export type { Patience } from "./retries.ts";
export type {
  Answer,
  CallOptions,
  FileId,
  Input,
  Item,
  ListId,
  OperationId,
  Output,
  Refused,
} from "./types.ts";
