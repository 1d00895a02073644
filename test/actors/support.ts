/** A quarter of what the engine takes in one message, since an update is repeated in its answer. */
export const UPDATE_BYTES_MAX = 1_048_576;
export const sizeOf = (commands: readonly unknown[]): number => Buffer.byteLength(JSON.stringify(commands));
export const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

export const place = { organizationId: "organization", projectId: "project" };
