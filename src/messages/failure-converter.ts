import { DefaultFailureConverter } from "@temporalio/common";

/** Puts messages and stack traces of failures into a payload, which the codec seals; Temporal itself sees "Encoded failure". */
export const failureConverter = new DefaultFailureConverter({ encodeCommonAttributes: true });
