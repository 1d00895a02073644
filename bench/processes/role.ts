import type { ChildMessage, ParentMessage } from "../child.ts";

export interface Role {
  readonly port: number | null;
  readonly answer?: (request: unknown) => Promise<unknown>;
  readonly stop: () => Promise<void>;
}

/** A child's side of the channel: starts with the configuration it was given, serves, ends when told or orphaned. */
export async function runRole(start: (config: unknown) => Promise<Role>): Promise<void> {
  process.on("disconnect", () => process.exit(1));
  // Ctrl-C reaches the whole group: the parent ends its children in order.
  process.on("SIGINT", () => undefined);
  const role = await start(JSON.parse(process.argv[2] ?? "null"));
  process.on("message", (message: ParentMessage) => {
    if (message.type === "stop") {
      void role.stop().finally(() => process.exit(0));
      return;
    }
    void role.answer?.(message.value).then((value) => say({ type: "answer", value }));
  });
  say({ type: "ready", port: role.port });
}

const say = (message: ChildMessage): void => void process.send?.(message);
