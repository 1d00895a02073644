/**
 * Envelopes bind a payload in Temporal to its purpose. The codec proves that this service made a payload for this
 * workflow; the envelope proves that it is this message or answer, so that no authentic payload passes for one of
 * another kind.
 */

/** Reason for refusing a payload. `unknown_key`: it names a master key that this process does not have. */
export type PayloadRefusal = "unauthenticated" | "unknown_key" | "altered" | "misplaced";

/**
 * Placeholder for a refused payload, so that decoding never throws: the SDK would repeat a workflow's task for ever.
 */
export interface RefusedPayload {
  readonly refused: PayloadRefusal;
}

export interface Envelope {
  readonly for: string;
  readonly args: readonly unknown[];
  /** Epoch milliseconds at which an update was sent. */
  readonly sentAt?: number;
}

interface AnswerEnvelope<T = unknown> {
  readonly answers: string;
  readonly result: T;
}

/** Returns the purpose of each kind of message and answer. */
export const forStart = (workflowType: string): string => `start ${workflowType}`;
export const forSignal = (name: string): string => `signal ${name}`;
export const forQuery = (name: string): string => `query ${name}`;
export const forActivity = (type: string): string => `activity ${type}`;
/** Includes the update's id: Temporal accepts an id once per run, so no update is decided twice in a run. */
export const forUpdate = (name: string, updateId: string): string => `update ${name} ${updateId}`;

export type Opened<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly refused: PayloadRefusal };

/** Wraps all arguments in one payload, so that none can be replaced by itself. */
export const enveloped = (purpose: string, args: readonly unknown[], sentAt?: number): [Envelope] => [
  { for: purpose, args, ...(sentAt === undefined ? {} : { sentAt }) },
];

/** Opens a message, checking its purpose. */
export function openMessage(purpose: string, received: readonly unknown[]): Opened<Envelope> {
  const [envelope] = received;
  if (received.length === 1 && isEnvelope(envelope) && envelope.for === purpose)
    return { ok: true, value: envelope };
  return { ok: false, refused: refusalOf(envelope) };
}

export const answered = (purpose: string, result: unknown): AnswerEnvelope => ({ answers: purpose, result });

/** Opens an answer, checking the purpose of its message. */
export function openAnswer<T>(purpose: string, received: unknown): Opened<T> {
  if (isAnswer<T>(received) && received.answers === purpose) return { ok: true, value: received.result };
  return { ok: false, refused: refusalOf(received) };
}

/** Opens a result without an envelope: a query's, or a finished workflow's. */
export const openResult = <T>(received: T): Opened<T> =>
  isRefused(received) ? { ok: false, refused: received.refused } : { ok: true, value: received };

/** Returns the refusal of a payload; an authentic one without the expected envelope is another message's. */
const refusalOf = (value: unknown): PayloadRefusal => (isRefused(value) ? value.refused : "misplaced");

const REFUSALS: ReadonlySet<unknown> = new Set<PayloadRefusal>([
  "unauthenticated",
  "unknown_key",
  "altered",
  "misplaced",
]);

const isFields = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isRefused = (value: unknown): value is RefusedPayload =>
  isFields(value) && REFUSALS.has(value["refused"]);

/** The envelope's purpose implies the result's type, which the service itself wrote. */
const isAnswer = <T>(value: unknown): value is AnswerEnvelope<T> =>
  isFields(value) && typeof value["answers"] === "string";

const isEnvelope = (value: unknown): value is Envelope =>
  isFields(value) && typeof value["for"] === "string" && Array.isArray(value["args"]);
