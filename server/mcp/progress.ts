import { z } from "zod";

/** Delay of the first notification: a payment that is decided at once gets none. */
const FIRST_DELAY_MS = 1_000;
const INTERVAL_MS = 5_000;

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

/** Returns the progress that a message requests; null if it requests none or is not a waiting call. */
export function requestedProgressOf(message: unknown): RequestedProgress | null {
  const call = waitingCall.safeParse(message);
  if (!call.success) return null;
  const { _meta: meta, arguments: args } = call.data.params;
  return { progressToken: meta.progressToken, waitSeconds: args.waitSeconds };
}

const withToken = z.looseObject({
  params: z.looseObject({ _meta: z.looseObject({ progressToken: z.unknown() }) }),
});

/** Removes the progress request, for a client that does not accept streams. */
export function withoutProgress(message: unknown): unknown {
  const requesting = withToken.safeParse(message);
  if (!requesting.success) return message;
  const { params } = requesting.data;
  const { progressToken: _progressToken, ...meta } = params._meta;
  return { ...requesting.data, params: { ...params, _meta: meta } };
}

/** Reports every few seconds how long the work has taken, until it is done. A disconnected client is not an error. */
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
    timer = setInterval(report, INTERVAL_MS);
  }, FIRST_DELAY_MS);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}
