/**
 * Envelopes bind what goes through Temporal to what it is for. The codec shows that a payload was made by this service and for this
 * workflow; the envelope, that it is this message or answer: no authentic payload passes for one of another kind.
 */

/** Why a payload was not taken. `unknown_key`: it names a master key that this process does not have. */
export type PayloadRefusal = "unauthenticated" | "unknown_key" | "altered" | "misplaced";

/** Stands for a payload that was refused, so that decoding never throws: the SDK would repeat a workflow's task for ever. */
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

/** Purposes of messages and answers. */
export const forStart = (workflowType: string): string => `start ${workflowType}`;
export const forSignal = (name: string): string => `signal ${name}`;
export const forQuery = (name: string): string => `query ${name}`;
export const forActivity = (type: string): string => `activity ${type}`;
/** Temporal takes an id once in a run, so an update is never decided twice in it. */
export const forUpdate = (name: string, updateId: string): string => `update ${name} ${updateId}`;

export type Opened<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly refused: PayloadRefusal };

/** Arguments as they are sent: all of them in one payload, so that none can be replaced by itself. */
export const enveloped = (purpose: string, args: readonly unknown[], sentAt?: number): [Envelope] => [
  { for: purpose, args, ...(sentAt === undefined ? {} : { sentAt }) },
];

/** The envelope of a message that is for this purpose. */
export function openMessage(purpose: string, received: readonly unknown[]): Opened<Envelope> {
  const [envelope] = received;
  if (received.length === 1 && isEnvelope(envelope) && envelope.for === purpose)
    return { ok: true, value: envelope };
  return { ok: false, refused: refusalOf(envelope) };
}

export const answered = (purpose: string, result: unknown): AnswerEnvelope => ({ answers: purpose, result });

/** The answer to what had this purpose. */
export function openAnswer<T>(purpose: string, received: unknown): Opened<T> {
  if (isAnswer<T>(received) && received.answers === purpose) return { ok: true, value: received.result };
  return { ok: false, refused: refusalOf(received) };
}

/** An authentic payload that is no such envelope is another message's. */
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

/** An authentic answer to this purpose has the type that this service gave it. */
const isAnswer = <T>(value: unknown): value is AnswerEnvelope<T> =>
  isFields(value) && typeof value["answers"] === "string";

const isEnvelope = (value: unknown): value is Envelope =>
  isFields(value) && typeof value["for"] === "string" && Array.isArray(value["args"]);
