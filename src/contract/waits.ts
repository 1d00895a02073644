import { z } from "zod";

/** Maximum wait for an answer, below the 60 s after which clients give up. */
const WAIT_SECONDS_MAX = 45;

/** Query of operations whose answer may wait for a payment. */
export const waits = z.strictObject({
  waitSeconds: z
    .int()
    .min(0)
    .max(WAIT_SECONDS_MAX)
    .default(0)
    .meta({
      description:
        "While the payment is pending, the answer waits up to so many seconds for a person's decision and for its completion on the rail. " +
        "0: answer at once.",
    }),
});
