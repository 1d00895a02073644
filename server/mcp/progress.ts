import { z } from "zod";

/** Before the first one, so that a payment that is decided at once is answered without any. */
const FIRST_AFTER_MS = 1_000;
const EVERY_MS = 5_000;

/** A call whose caller requested progress notifications. */
export interface RequestedProgress {
  readonly progressToken: string | number;
  readonly waitSeconds: number;
}

export interface ProgressNotification {
  readonly method: "notifications/progress";
  readonly params: {
    readonly progressToken: string | number;
    readonly progress: number;
    readonly total: number;
    readonly message: string;
  };
}

const waitingCall = z.looseObject({
  method: z.literal("tools/call"),
  params: z.looseObject({
    arguments: z.looseObject({ waitSeconds: z.int().min(1) }),
    _meta: z.looseObject({ progressToken: z.union([z.string(), z.number()]) }),
  }),
});

/** Null where a message is no call that waits, or where progress was not requested. */
export function requestedProgressOf(message: unknown): RequestedProgress | null {
  const call = waitingCall.safeParse(message);
  if (!call.success) return null;
  const { _meta: meta, arguments: args } = call.data.params;
  return { progressToken: meta.progressToken, waitSeconds: args.waitSeconds };
}

const withToken = z.looseObject({
  params: z.looseObject({ _meta: z.looseObject({ progressToken: z.unknown() }) }),
});

/** A message that requests no progress, for a client that takes no stream to send it in. */
export function withoutProgress(message: unknown): unknown {
  const requesting = withToken.safeParse(message);
  if (!requesting.success) return message;
  const { params } = requesting.data;
  const { progressToken: _progressToken, ...meta } = params._meta;
  return { ...requesting.data, params: { ...params, _meta: meta } };
}

/** Says every few seconds how long the work has been waited for, until it is done. It is no failure that the client has disconnected. */
export async function withProgress<T>(
  requested: RequestedProgress | null,
  notify: (notification: ProgressNotification) => Promise<void>,
  work: Promise<T>,
): Promise<T> {
  if (requested === null) return work;
  const began = performance.now();
  const { progressToken, waitSeconds } = requested;
  const report = (): void => {
    const progress = Math.min(waitSeconds, Math.round((performance.now() - began) / 1_000));
    const message = "Waiting for the payment to be decided.";
    const params = { progressToken, progress, total: waitSeconds, message };
    void notify({ method: "notifications/progress", params }).catch(() => undefined);
  };
  let timer = setTimeout(() => {
    report();
    timer = setInterval(report, EVERY_MS);
  }, FIRST_AFTER_MS);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}
