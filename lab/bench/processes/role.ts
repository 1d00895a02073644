import type { ChildMessage, ParentMessage } from "../child.ts";

export interface Role {
  readonly port: number | null;
  readonly answer?: (request: unknown) => Promise<unknown>;
  readonly stop: () => Promise<void>;
}

/** A child's side of the channel: starts with the configuration that it gets there, serves, ends when it has to or is orphaned. */
export async function runRole(start: (config: unknown) => Promise<Role>): Promise<void> {
  process.on("disconnect", () => process.exit(1));
  // Ctrl-C reaches the whole group: the parent ends its children in order.
  process.on("SIGINT", () => undefined);
  const role = await start(await configuration());
  process.on("message", (message: ParentMessage) => {
    if (message.type === "stop") {
      void role.stop().finally(() => process.exit(0));
      return;
    }
    if (message.type !== "request") return;
    void role.answer?.(message.value).then((value) => say({ type: "answer", value }));
  });
  say({ type: "ready", port: role.port });
}

/** Not an argument: it has secrets, and every local user can read those. */
const configuration = (): Promise<unknown> =>
  new Promise((resolve, reject) => {
    process.once("message", (message: ParentMessage) => {
      if (message.type === "start") resolve(message.config);
      else reject(new Error(`got ${message.type} before its configuration`));
    });
  });

const say = (message: ChildMessage): void => void process.send?.(message);
