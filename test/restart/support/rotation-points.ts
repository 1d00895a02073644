import { z } from "zod";

/** Names the write at which a rotation is held to the process under test. */
export const ROTATION_HOLD = "TEST_ROTATION_HOLD";

const hold = z.object({ side: z.enum(["before", "after"]), write: z.int().min(1) });
export type RotationHold = z.output<typeof hold>;

export const rotationHold = (text: string | undefined): RotationHold => hold.parse(JSON.parse(text ?? ""));
