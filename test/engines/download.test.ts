import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { DOWNLOAD_LIMITS, downloadFile, downloadText } from "../../src/engines/download.ts";
import { MONGOD } from "../../src/engines/mongod-binary.ts";
import { resolveContext, resolveEngine } from "../../src/engines/resolver.ts";
import { TEMPORAL } from "../../src/engines/temporal-binary.ts";
import {
  engineErrorOf,
  type LocalServer,
  localServer,
  removeFolder,
  scratchFolder,
  timed,
  writeScript,
} from "./support/scratch.ts";

/** For tests, and yet longer than a busy machine keeps this process, or its server in it, from going on. */
const QUICK = { ...DOWNLOAD_LIMITS, connectTimeoutMs: 1_000, stallTimeoutMs: 1_000, overallTimeoutMs: 3_000 };

describe("A download", () => {
  let folder: string;
  let server: LocalServer;
  const target = (): string => path.join(folder, "target");

  before(async () => {
    folder = await scratchFolder();
    server = await localServer((request, response) => {
      switch (request.url ?? "") {
        case "/silent":
          return;
        case "/stalling":
          response.write("a beginning");
          return;
        case "/dripping": {
          const timer = setInterval(() => response.write("."), 50);
          response.once("close", () => {
            clearInterval(timer);
          });
          return;
        }
        case "/whole":
          response.end("the whole of it");
          return;
        default:
          response.writeHead(404).end();
      }
    });
  });
  after(async () => {
    await server.close();
    await removeFolder(folder);
  });

  it("arrives whole", async () => {
    await downloadFile(new URL("/whole", server.url), target(), DOWNLOAD_LIMITS);
    expect(await readFile(target(), "utf8")).to.equal("the whole of it");
  });

  for (const [what, why] of [
    ["silent", "did not answer within 1 s"],
    ["stalling", "sent nothing more within 1 s"],
    ["dripping", "did not finish within 3 s"],
    ["missing", "answered 404"],
  ] as const) {
    it(`from a ${what} host is given up within its bounds`, async () => {
      const url = new URL(`/${what}`, server.url);
      const { value, ms } = await timed(() =>
        engineErrorOf(downloadFile(url, target(), QUICK), "FETCH_FAILED"),
      );
      expect(value.message).to.include(why);
      // Its own bounds are in the reason; a host that is waited for has no end.
      expect(ms).to.be.below(60_000);
    });
  }

  it("from a silent server is given up at once", async () => {
    const gone = await localServer(() => undefined);
    await gone.close();
    const error = await engineErrorOf(downloadText(new URL(gone.url), QUICK), "FETCH_FAILED");
    expect(error.message).to.include("ECONNREFUSED");
  });

  it("is bounded in size", async () => {
    const little = { ...DOWNLOAD_LIMITS, bytesMax: 4 };
    const error = await engineErrorOf(
      downloadFile(new URL("/whole", server.url), target(), little),
      "FETCH_FAILED",
    );
    expect(error.message).to.include("more than expected");
  });

  it("gives up on the official hosts by default in less than 10 seconds", () => {
    expect(DOWNLOAD_LIMITS.connectTimeoutMs).to.be.below(10_000);
  });
});

describe("The official downloads", () => {
  let folder: string;
  let server: LocalServer;
  let archive: Buffer;
  let announcedSha256: string;
  let silent: boolean;

  beforeEach(async () => {
    silent = false;
    folder = await scratchFolder();
    const tree = path.join(folder, "tree");
    await mkdir(tree);
    await writeScript(path.join(tree, "top", "bin", "mongod"), "echo db version v7.0.28");
    await writeScript(
      path.join(tree, "temporal"),
      "echo 'temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)'",
    );
    await promisify(execFile)("tar", ["-czf", path.join(folder, "a.tgz"), "-C", tree, "."]);
    archive = await readFile(path.join(folder, "a.tgz"));
    announcedSha256 = createHash("sha256").update(archive).digest("hex");
    server = await localServer((request, response) => {
      if (silent) return;
      const url = new URL(request.url ?? "", server.url);
      if (url.pathname === "/cli/v1.5.1") {
        response.end(JSON.stringify({ archiveUrl: `${server.url}/a.tgz`, fileToExtract: "temporal" }));
      } else if (url.pathname.endsWith(".sha256")) response.end(`${announcedSha256}  some-file.tgz\n`);
      else if (url.pathname.endsWith(".tgz")) response.end(archive);
      else response.writeHead(404).end();
    });
  });
  afterEach(async () => {
    await server.close();
    await removeFolder(folder);
  });

  /** Without python3, go and mvn on PATH, so that nothing but the official download can work. */
  const context = async () => {
    const bin = path.join(folder, "bin");
    for (const tool of ["tar", "gzip", "sh"]) {
      await writeScript(path.join(bin, tool), `PATH=/usr/bin:/bin exec ${tool} "$@"`);
    }
    const env = { PATH: bin, XDG_CACHE_HOME: path.join(folder, "cache"), HOME: folder };
    return {
      ...resolveContext(env, () => undefined),
      hosts: { mongodb: server.url, temporal: server.url },
      limits: QUICK,
    };
  };

  it("bring mongod, checked against the SHA-256 that the host publishes", async () => {
    expect(await resolveEngine(MONGOD, await context())).to.include({ from: "the official download" });
  });

  it("bring no mongod whose SHA-256 is another", async () => {
    announcedSha256 = announcedSha256.replace(/./, (digit) => (digit === "0" ? "1" : "0"));
    const error = await engineErrorOf(resolveEngine(MONGOD, await context()), "NO_SOURCE");
    expect(error.message).to.include("the download's SHA-256 is not the one that");
  });

  it("bring the Temporal CLI, by the look-up that the SDK makes", async () => {
    expect(await resolveEngine(TEMPORAL, await context())).to.include({ from: "the official download" });
  });

  it("from hosts that hang are given up in seconds, and one line says what to install and to set", async () => {
    silent = true;
    const given = await context();
    for (const [engine, variables] of [
      [MONGOD, ["mongod is missing", "MONGOD_BINARY", "MONGODB_URI"]],
      [TEMPORAL, ["temporal is missing", "TEMPORAL_CLI", "TEMPORAL_ADDRESS"]],
    ] as const) {
      const work = (): Promise<Error> =>
        engine === MONGOD
          ? engineErrorOf(resolveEngine(MONGOD, given), "NO_SOURCE")
          : engineErrorOf(resolveEngine(TEMPORAL, given), "NO_SOURCE");
      const { value, ms } = await timed(work);
      expect(ms).to.be.below(60_000);
      for (const text of [...variables, "did not answer", "is not installed"]) {
        expect(value.message).to.include(text);
      }
    }
  });
});
