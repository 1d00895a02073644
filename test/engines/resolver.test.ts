import { createHash } from "node:crypto";
import { appendFile, mkdir, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect } from "chai";
import { ANVIL } from "../../src/engines/anvil-binary.ts";
import { MONGOD } from "../../src/engines/mongod-binary.ts";
import { probeVersion } from "../../src/engines/probe.ts";
import { type Engine, type Fetcher, resolveContext, resolveEngine } from "../../src/engines/resolver.ts";
import { TEMPORAL } from "../../src/engines/temporal-binary.ts";
import { engineErrorOf, removeFolder, scratchFolder, writeScript } from "./support/scratch.ts";

const WORKS = "echo version 2.1";
const BROKEN = "echo 'Error: no libcrypto' >&2; exit 127";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

const toy = (...fetchers: readonly Fetcher[]): Engine<string> => ({
  name: "toy",
  variable: "TOY_BINARY",
  remedy: "Install toy or set TOY_BINARY.",
  address: (env) => env["TOY_ADDRESS"] ?? null,
  probe: (file, env) => probeVersion(file, env, /version (\d+)\.(\d+)/, [2, 0]),
  fetchers,
});

const inPackage = (file: string | null): Engine<string> => ({ ...toy(), packaged: () => file });

describe("Where an engine's binary comes from", () => {
  let folder: string;
  let progress: string[];
  let fetches: string[];

  beforeEach(async () => {
    folder = await scratchFolder();
    progress = [];
    fetches = [];
  });
  afterEach(() => removeFolder(folder));

  /** A source that leaves a script, or fails. */
  const fetcher = (id: string, script: string | null, pinned: Fetcher["pinned"] = {}): Fetcher => ({
    id,
    label: `source ${id}`,
    pinned,
    async fetch(into) {
      fetches.push(id);
      if (script === null) throw new Error("the host is not there");
      await writeScript(path.join(into, "toy"), script);
      return "toy";
    },
  });

  const cache = (): string => path.join(folder, "cache");

  const resolve = (engine: Engine<string>, env: NodeJS.ProcessEnv = {}) => {
    const paths = `${path.join(folder, "path")}:/usr/bin:/bin`;
    const given = { PATH: paths, XDG_CACHE_HOME: cache(), ...env };
    return resolveEngine(
      engine,
      resolveContext(given, (line) => progress.push(line)),
    );
  };

  it("takes the sources in their order, each as soon as those before it have nothing", async () => {
    const onPath = path.join(folder, "path", "toy");
    const named = await writeScript(path.join(folder, "named"), WORKS);
    const engine = toy(fetcher("official", null), fetcher("registry", WORKS), fetcher("never", WORKS));

    const fetched = await resolve(engine);
    expect(fetched).to.include({ kind: "binary", from: "source registry" });
    expect(fetches).to.deep.equal(["official", "registry"]);

    expect(await resolve(engine)).to.include({ kind: "binary", from: "the cache" });
    expect(fetches).to.have.length(2);

    await writeScript(onPath, WORKS);
    expect(await resolve(engine)).to.include({ path: onPath, from: "PATH" });

    const naming = { TOY_BINARY: named };
    expect(await resolve(engine, naming)).to.include({ path: named, from: "TOY_BINARY" });
    expect(await resolve(engine, { ...naming, TOY_ADDRESS: "there:1" })).to.deep.equal({
      kind: "address",
      address: "there:1",
    });
  });

  it("takes the program of an npm package of ours before one on PATH, unless it does not work", async () => {
    const onPath = await writeScript(path.join(folder, "path", "toy"), WORKS);
    const packaged = await writeScript(path.join(folder, "package", "toy"), WORKS);
    expect(await resolve(inPackage(packaged))).to.include({ path: packaged, from: "the npm package" });
    expect(await resolve(inPackage(packaged), { TOY_BINARY: onPath })).to.include({ from: "TOY_BINARY" });
    expect(await resolve(inPackage(null))).to.include({ path: onPath, from: "PATH" });
    await writeScript(packaged, BROKEN);
    expect(await resolve(inPackage(packaged))).to.include({ path: onPath, from: "PATH" });
    expect(progress.join("\n")).to.include(packaged).and.include("no libcrypto");
  });

  it("has the local chain's in the npm package for this system", async () => {
    expect(await resolve(ANVIL, { EVM_RPC_URL: "" })).to.include({ from: "the npm package" });
  });

  it("never passes over a binary that is named but cannot be used", async () => {
    await writeScript(path.join(folder, "path", "toy"), WORKS);
    const engine = toy(fetcher("registry", WORKS));
    const plain = path.join(folder, "plain");
    await writeFile(plain, "not executable");
    const broken = await writeScript(path.join(folder, "broken"), BROKEN);
    const old = await writeScript(path.join(folder, "old"), "echo version 1.9");
    const cases = [
      [path.join(folder, "missing"), "there is no executable file"],
      [plain, "there is no executable file"],
      [folder, "there is no executable file"],
      [broken, "Error: no libcrypto"],
      [old, "at least 2.0 is needed"],
    ] as const;
    for (const [file, why] of cases) {
      const error = await engineErrorOf(resolve(engine, { TOY_BINARY: file }), "BINARY_BROKEN");
      expect(error.message).to.include("TOY_BINARY").and.include(file).and.include(why);
    }
    expect(fetches).to.deep.equal([]);
  });

  it("passes over a binary on PATH that does not work, and says so", async () => {
    await writeScript(path.join(folder, "path", "toy"), BROKEN);
    expect(await resolve(toy(fetcher("registry", WORKS)))).to.include({ from: "source registry" });
    expect(progress.join("\n")).to.match(/on PATH cannot be used .*no libcrypto/);
  });

  it("refuses what does not have its pinned SHA-256, keeps nothing of it, and goes on", async () => {
    const right = sha256(`#!/bin/sh\n${WORKS}\n`);
    const engine = toy(
      fetcher("forged", `${WORKS} # altered on the way`, { toy: right }),
      fetcher("honest", WORKS, { toy: right }),
    );
    expect(await resolve(engine)).to.include({ from: "source honest" });
    expect(progress.join("\n")).to.include(`not ${right}`);
    const kept = await readdir(path.join(cache(), "agent-spending-control", "toy"));
    expect(kept.filter((name) => name !== ".lock")).to.deep.equal([
      `honest-${process.platform}-${process.arch}`,
    ]);
  });

  it("refuses a cached binary that has changed since it was fetched, and fetches it again", async () => {
    const engine = toy(fetcher("registry", WORKS));
    const first = await resolve(engine);
    if (first.kind !== "binary") throw new Error("a binary was expected");
    await appendFile(first.path, "echo altered\n");
    expect(await resolve(engine)).to.include({ from: "source registry" });
    expect(progress.join("\n")).to.match(/in the cache is refused: .*SHA-256/);
    expect(await resolve(engine)).to.include({ from: "the cache" });
  });

  it("gives one line when nothing works: what to do, and why each source failed", async () => {
    const engine = toy(fetcher("official", null), fetcher("registry", BROKEN));
    const error = await engineErrorOf(resolve(engine), "NO_SOURCE");
    expect(error.message).to.match(
      /^toy is missing\. Install toy or set TOY_BINARY\. Tried: TOY_BINARY is not set; no toy on PATH; nothing in the cache .*; source official: the host is not there; source registry: .*no libcrypto/,
    );
  });

  it("says that the cache cannot be used, where it cannot", async () => {
    await writeFile(cache(), "a file where the folder should be");
    const error = await engineErrorOf(resolve(toy(fetcher("registry", WORKS))), "NO_SOURCE");
    expect(error.message).to.include("the cache folder cannot be used");
  });

  it("fetches once when several need it at the same moment, and clears what a killed fetch left", async () => {
    const left = path.join(cache(), "agent-spending-control", "toy", ".partial-killed");
    await mkdir(left, { recursive: true });
    const engine = toy(fetcher("registry", WORKS));
    const found = await Promise.all([resolve(engine), resolve(engine), resolve(engine)]);
    expect(new Set(found.map((one) => (one.kind === "binary" ? one.path : ""))).size).to.equal(1);
    expect(fetches).to.deep.equal(["registry"]);
    expect(await readdir(path.dirname(left))).not.to.include(".partial-killed");
  });
});

describe("Addresses in the environment", () => {
  it("are used as they are, and nothing is looked for", () => {
    expect(MONGOD.address({ MONGODB_URI: "mongodb+srv://db.example" })).to.equal("mongodb+srv://db.example");
    const temporal = { TEMPORAL_ADDRESS: "t.example:7233", TEMPORAL_NAMESPACE: "money" };
    expect(TEMPORAL.address(temporal)).to.deep.equal({ address: "t.example:7233", namespace: "money" });
    expect(MONGOD.address({ MONGODB_URI: "" })).to.equal(null);
    expect(TEMPORAL.address({})).to.equal(null);
    expect(ANVIL.address({ EVM_RPC_URL: "https://rpc.example/v2/key" })).to.equal(
      "https://rpc.example/v2/key",
    );
    expect(ANVIL.address({ EVM_RPC_URL: "" })).to.equal(null);
  });

  it("are refused when malformed or set by halves, without repeating a password", () => {
    expect(() => MONGOD.address({ MONGODB_URI: "user:secret@db" })).to.throw(/^MONGODB_URI does not begin/);
    for (const name of ["TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE"]) {
      expect(() => TEMPORAL.address({ [name]: "x" })).to.throw(/only one is set/);
    }
    for (const value of ["rpc.example/v2/secret", "ws://rpc.example/secret", "secret"]) {
      expect(() => ANVIL.address({ EVM_RPC_URL: value }))
        .to.throw(/^EVM_RPC_URL is not an address/)
        .and.property("message")
        .not.includes("secret");
    }
  });
});
