import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type RequestListener, type Server } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { EngineError, type EngineErrorCode } from "../../../src/engines/errors.ts";

/** A folder of the test's own. */
export const scratchFolder = (): Promise<string> => mkdtemp(path.join(tmpdir(), "engines-test-"));

export const removeFolder = (folder: string): Promise<void> =>
  rm(folder, { recursive: true, force: true, maxRetries: 5 });

/** An executable shell script. */
export async function writeScript(file: string, body: string): Promise<string> {
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, `#!/bin/sh\n${body}\n`);
  await chmod(file, 0o755);
  return file;
}

/** The error that the work is refused with; fails if it succeeds or if the error is of another kind or code. */
export async function engineErrorOf(work: Promise<unknown>, code: EngineErrorCode): Promise<EngineError> {
  let error: unknown;
  try {
    await work;
  } catch (caught) {
    error = caught;
  }
  if (!(error instanceof EngineError)) throw new Error("an EngineError was expected", { cause: error });
  if (error.code !== code) throw new Error(`${code} was expected, not ${error.code}`, { cause: error });
  if (error.message.includes("\n")) throw new Error("a message of one line was expected", { cause: error });
  return error;
}

export interface LocalServer {
  readonly url: string;
  close(): Promise<void>;
}

/** An HTTP server on loopback, in the place of a download host. */
export async function localServer(listener: RequestListener): Promise<LocalServer> {
  const server: Server = createServer(listener);
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("a TCP server has a port");
  return {
    url: `http://127.0.0.1:${String(address.port)}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}

/** Runs the work and tells how long it took. */
export async function timed<T>(work: () => Promise<T>): Promise<{ readonly value: T; readonly ms: number }> {
  const startedAt = performance.now();
  return { value: await work(), ms: performance.now() - startedAt };
}
