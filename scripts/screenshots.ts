import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { builtFile, PACKAGE_ROOT } from "../src/lib/package-root.ts";
import { photograph } from "./screenshots/photograph.ts";
import { populate } from "./screenshots/populate.ts";

// `npm run screenshots`: each page of the dashboard, light and dark, on a desk and on a phone, of a service of its own with an
// organization in it that is at work. Into docs/images, small, or as PNG into the folder that is named.

const STARTED_MS = 180_000;

const [folder = join(PACKAGE_ROOT, "docs", "images")] = process.argv.slice(2);
const type = process.argv.length > 2 ? "png" : "webp";

const data = await mkdtemp(join(tmpdir(), "spending-control-screenshots-"));
const ports = { PORT: "0", MONGODB_PORT: "0", TEMPORAL_PORT: "0", TEMPORAL_UI_PORT: "0", CHAIN_PORT: "0" };
const service = spawn(process.execPath, [builtFile("server/main.ts"), "start"], {
  env: { ...process.env, ...ports, DATA_DIR: join(data, "data") },
  stdio: ["ignore", "pipe", "inherit"],
});
try {
  const { origin, token } = await setUpLink();
  const stage = await populate(origin, token);
  await mkdir(folder, { recursive: true });
  for (const file of await readdir(folder)) if (file.endsWith(`.${type}`)) await rm(join(folder, file));
  await photograph({ origin, stage, folder, type });
} finally {
  service.kill("SIGTERM");
  await once(service, "exit");
  await rm(data, { recursive: true, force: true, maxRetries: 5 });
}

/** What the first start prints; passkeys and cookies are for a name, not for an address. */
async function setUpLink(): Promise<{ readonly origin: string; readonly token: string }> {
  let said = "";
  const late = AbortSignal.timeout(STARTED_MS);
  while (!late.aborted) {
    const [chunk]: unknown[] = await once(service.stdout, "data", { signal: late });
    said += String(chunk);
    const [, origin, token] = /Set up: (http:\/\/localhost:\d+)\/setup#token=(\S+)/.exec(said) ?? [];
    if (origin !== undefined && token !== undefined) return { origin, token };
  }
  throw new Error("the service has not started");
}
