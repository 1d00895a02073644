import { connect, createServer, type Socket } from "node:net";

/** A line to MongoDB that breaks after the database has done what it was told, before it can say so. */
export interface MongoProxy {
  readonly uri: string;
  /** How often the line has broken. */
  readonly broken: () => number;
  /** Breaks the line at the answers to the next writes that name this, so many times. */
  breakAt(name: string, times: number): void;
  close(): Promise<void>;
}

export async function startMongoProxy(target: string, database: string): Promise<MongoProxy> {
  const { hostname, port } = new URL(target);
  const open = new Set<Socket>();
  let wanted = { name: "", times: 0 };
  let broken = 0;
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    let breaks = false;
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        open.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.on("data", (chunk: Buffer) => {
      const text = chunk.toString("latin1");
      if (wanted.times > 0 && /insert|update/.test(text) && text.includes(wanted.name)) {
        wanted = { ...wanted, times: wanted.times - 1 };
        breaks = true;
      }
      upstream.write(chunk);
    });
    upstream.on("data", (chunk: Buffer) => {
      if (breaks) {
        broken += 1;
        client.destroy();
      } else client.write(chunk);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("a proxy has a port");
  const uri = new URL(target);
  uri.port = String(address.port);
  uri.pathname = `/${database}`;
  // Straight to this line: the replica set's own list of members would lead around it.
  uri.search = "?directConnection=true&authSource=admin";
  return {
    uri: uri.toString(),
    broken: () => broken,
    breakAt(name, times) {
      wanted = { name, times };
    },
    async close() {
      for (const socket of open) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
