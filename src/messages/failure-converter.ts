import { DefaultFailureConverter } from "@temporalio/common";

/**
 * Encodes failures' messages and stack traces into a payload, which the codec seals; Temporal itself sees "Encoded
 * failure".
 */
export const failureConverter = new DefaultFailureConverter({ encodeCommonAttributes: true });
