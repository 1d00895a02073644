import { spawn } from "node:child_process";
import { once } from "node:events";
import { access } from "node:fs/promises";
import { join } from "node:path";
import { accepts, choosePorts } from "../../src/engines/ports.ts";
import { pauseBefore } from "./poll-pauses.ts";

const LOOKS_MAX = 240;

/**
 * The environment in which the time-skipping server starts with half of the processor time, where it is a Java program:
 * it finds its classes parsed in an archive, which one run of it leaves behind. Each process of workflow tests starts some.
 */
export async function withClassArchive(
  server: string,
  folder: string,
): Promise<Readonly<Record<string, string>>> {
  const archive = join(folder, "test-server.jsa");
  const { port } = await choosePorts({ port: { port: 0, variable: "none" } });
  const child = spawn(server, [String(port)], {
    env: { ...process.env, JAVA_TOOL_OPTIONS: `-XX:ArchiveClassesAtExit=${archive}` },
    stdio: "ignore",
  });
  const ended = once(child, "exit");
  for (let look = 0; look < LOOKS_MAX && child.exitCode === null; look += 1) {
    if (await accepts(port)) break;
    await pauseBefore(look);
  }
  child.kill("SIGTERM");
  await ended;
  const isThere = await access(archive).then(
    () => true,
    () => false,
  );
  return isThere ? { JAVA_TOOL_OPTIONS: `-XX:SharedArchiveFile=${archive}` } : {};
}
