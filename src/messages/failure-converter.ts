import { DefaultFailureConverter } from "@temporalio/common";

/** Encodes failures' messages and stack traces, which the codec seals; Temporal sees "Encoded failure". */
export const failureConverter = new DefaultFailureConverter({ encodeCommonAttributes: true });
