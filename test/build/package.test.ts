import { execFile } from "node:child_process";
import { appendFile, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { z } from "zod";
import { PACKAGE_ROOT } from "../../src/lib/package-root.ts";
import { allImports } from "../architecture/imports.ts";
import { Api, onceReachable } from "../support/api.ts";
import { PASSWORD } from "../support/service.ts";
import { Child, cleanEnvironment, until } from "../support/process.ts";
import { sharedEngines } from "../support/shared-engines.ts";
import { isSoak } from "../support/soak.ts";

const run = promisify(execFile);
const STARTED_MS = 180_000;
const ENDED_MS = 60_000;

const packed = z.tuple([z.object({ filename: z.string(), files: z.array(z.object({ path: z.string() })) })]);
const manifest = z.object({
  bin: z.record(z.string(), z.string()),
  dependencies: z.record(z.string(), z.string()),
});

/** It finds the engines by itself, where other tests are told what the run has found. */
const withoutBinaries = ({
  ANVIL_BINARY: _anvil,
  MONGOD_BINARY: _mongod,
  TEMPORAL_CLI: _temporal,
  ...rest
}: NodeJS.ProcessEnv): NodeJS.ProcessEnv => rest;

/** What a program that runs from the package may need. */
const ALLOWED =
  /^(package\.json|README\.md|LICENSE|temporal-dev\.yaml|server\/http\/pages\/[\w-]+\.(js|css)|dist\/workflow-bundle\.js|dist\/reference\/[\w.-]+|dist\/web\/index\.html|dist\/web\/assets\/[\w-]+\.(js\.gz|css\.gz|svg\.gz|woff2)|dist\/src\/(client|contract|domain|webhooks)\/.*\.d\.ts|dist\/(activities|contracts\/artifacts|server|src)\/.*\.js(on)?)$/;

const pack = async (folder: string) => {
  const args = ["pack", "--json", "--ignore-scripts", "--pack-destination", folder];
  const { stdout } = await run("npm", args, { cwd: PACKAGE_ROOT });
  return packed.parse(JSON.parse(stdout))[0];
};

const readManifest = async (folder: string) =>
  manifest.parse(JSON.parse(await readFile(join(folder, "package.json"), "utf8")));

describe("the package", () => {
  let folder: string;
  let content: Awaited<ReturnType<typeof pack>>;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "spending-control-package-"));
    content = await pack(folder);
  });
  after(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));

  it("holds what running the service needs, and no source, test or source map", () => {
    const paths = content.files.map(({ path }) => path);
    expect(paths.filter((path) => !ALLOWED.test(path))).to.deep.equal([]);
    expect(paths).to.include.members([
      "dist/server/main.js",
      "dist/workflow-bundle.js",
      "temporal-dev.yaml",
      "dist/web/index.html",
      "dist/reference/swagger-ui-bundle.js.gz",
      "dist/reference/LICENSE",
      "dist/src/engines/test-server-jars.json",
      "dist/src/client/index.d.ts",
      "dist/src/client/index.js",
      "dist/src/webhooks/verify-webhook.js",
      "dist/src/webhooks/verify-webhook.d.ts",
    ]);
  });

  it("depends on every package that its code imports", async () => {
    const { dependencies } = await readManifest(PACKAGE_ROOT);
    const imported = (await allImports())
      .filter(({ own, to, typeOnly }) => !own && !typeOnly && !to.startsWith("node:"))
      .map(({ to }) => /^(@[^/]+\/)?[^/]+/.exec(to)?.[0] ?? to);
    expect([...new Set(imported)].filter((name) => !(name in dependencies))).to.deep.equal([]);
  });

  it("starts from a folder that holds nothing else, by its command", async () => {
    const env = { ...withoutBinaries(cleanEnvironment()), DATA_DIR: join(folder, "data") };
    const ports = {
      PORT: "0",
      MONGODB_PORT: "0",
      TEMPORAL_PORT: "0",
      TEMPORAL_UI_PORT: "0",
      CHAIN_PORT: "0",
    };
    const installed = join(folder, "installed");
    await mkdir(installed);
    await run("tar", ["-xzf", join(folder, content.filename), "-C", installed]);
    // What npm would install beside it.
    await symlink(join(PACKAGE_ROOT, "node_modules"), join(installed, "node_modules"));
    const own = join(installed, "package");
    const command = join(own, (await readManifest(own)).bin["agent-spending-control"] ?? "");
    expect((await readFile(command, "utf8")).startsWith("#!/usr/bin/env node\n")).to.equal(true);

    const help = Child.spawn(process.execPath, [command, "admin", "--help"], env);
    expect((await help.exit(ENDED_MS)).code).to.equal(0);
    expect(help.stdout).to.include("create-organization");
    const usage = Child.spawn(process.execPath, [command, "--help"], env);
    expect((await usage.exit(ENDED_MS)).code).to.equal(0);
    expect(usage.stdout).to.match(/start[^]*server[^]*worker[^]*admin/);
    // The package finds itself by its name, as its installer does.
    const importing = ["-e", 'import("agent-spending-control/webhooks").then((it) => console.log(it))'];
    const { stdout: given } = await run(process.execPath, importing, { cwd: own });
    expect(given).to.include("verifyWebhook");

    const service = Child.spawn(process.execPath, [command], { ...env, ...ports });
    const [, baseUrl = ""] = await service.printed(/REST +(\S+)\/v1/, STARTED_MS);
    expect((await fetch(`${baseUrl}/readyz`)).status).to.equal(200);
    expect((await fetch(`${baseUrl}/setup`)).status).to.equal(200);
    expect((await fetch(`${baseUrl}/docs`)).status).to.equal(200);
    const [, ui = ""] = /^ +Temporal UI +(\S+)$/m.exec(service.stdout) ?? [];
    expect((await fetch(`${ui}/namespaces/agent-spending-control/workflows`)).status).to.equal(200);
    const [, origin, token] =
      /^Set up: (http:\/\/localhost:\d+)\/setup#token=(\S+)$/m.exec(service.stdout) ?? [];
    expect(origin, "browsers make passkeys at localhost alone").to.equal(baseUrl);
    const owner = { organizationName: "Acme", name: "Ada", email: "ada@example.com", password: PASSWORD };
    const api = new Api(baseUrl);
    // A call that took effect may have been told to come again.
    await onceReachable(() => api.call("POST", "/v1/setup", { body: { token, ...owner } }));
    const session = await api.signIn(owner.email, owner.password);
    const { body } = await api.surely("GET", "/v1/organization", { token: session });
    expect(body).to.have.nested.property("organization.plan", "enterprise");
    expect(service.stdout, "a command that only a checkout has").to.not.include("npm run demo");
    expect((await service.end("SIGTERM")).code).to.equal(0);
  });
});

describe("the build", () => {
  it("is not repeated while no source has changed", async () => {
    const stamp = join(PACKAGE_ROOT, "dist", ".stamp");
    const before = (await stat(stamp)).mtimeMs;
    const { stderr } = await run(process.execPath, [join(PACKAGE_ROOT, "scripts", "build.mjs")]);
    expect(stderr).to.equal("");
    expect((await stat(stamp)).mtimeMs).to.equal(before);
  });
});

/** A program in the service's place, which costs no start of the service. */
const STAND_IN = `console.log("Agent Spending Control is running. Stop with Ctrl-C.");
process.on("SIGTERM", () => process.exit(void console.log("Stopping: requests finish, then the engines.")));
setInterval(() => undefined, 60_000);
`;

describe("npm run dev", () => {
  it("starts the service again when something that it is made of changes", async () => {
    const folder = await mkdtemp(join(tmpdir(), "spending-control-dev-"));
    try {
      // With the times of its files, so that nothing is built anew but what changes.
      const tracked = await run("git", ["ls-files", "-z"], {
        cwd: PACKAGE_ROOT,
        maxBuffer: 16 * 1024 * 1024,
      });
      const top = new Set(tracked.stdout.split("\0").map((file) => file.split("/")[0] ?? ""));
      const copied = [...top, "dist"].filter((name) => !["", "docs", ".ci"].includes(name));
      await run("cp", ["-a", ...copied.map((name) => join(PACKAGE_ROOT, name)), folder]);
      await symlink(join(PACKAGE_ROOT, "node_modules"), join(folder, "node_modules"));
      // That the service says as much at its start and at its end, tests of its process show.
      if (!isSoak) await writeFile(join(folder, "dist", "server", "main.js"), STAND_IN);
      const env = {
        ...cleanEnvironment(),
        ...sharedEngines(),
        PORT: "0",
        DATA_DIR: join(folder, "data"),
      };
      const dev = Child.spawn(process.execPath, [join(folder, "scripts", "dev.mjs")], env);
      await dev.printed(/is running\.[^]*Stop with/, STARTED_MS);

      // Not a TypeScript file: compiling all of them in another folder would take half a minute.
      await appendFile(join(folder, "temporal-dev.yaml"), "# changed\n");
      await until("it runs again", STARTED_MS, () =>
        dev.stdout.split("Agent Spending Control is running.").length === 3 ? true : null,
      );
      expect(dev.stdout, "the one before was drained").to.include("Stopping: requests finish");
      expect((await dev.end("SIGTERM")).code).to.equal(0);
    } finally {
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    }
  });
});
