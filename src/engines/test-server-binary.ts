import { mkdir, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import { z } from "zod";
import { probeListens } from "./probe.ts";
import type { Engine, Fetcher } from "./resolver.ts";
import { fetchTemporalArtifact } from "./temporal-download.ts";
import JARS from "./test-server-jars.json" with { type: "json" };
import { runTool } from "./tools.ts";

const sdkPackageSchema = z.object({ version: z.string() });

/** Returns the SDK's version, which determines its default test server. */
function sdkVersion(): string {
  const file: unknown = createRequire(import.meta.url)("@temporalio/testing/package.json");
  return sdkPackageSchema.parse(file).version;
}

const officialDownload: Fetcher = {
  id: `official-sdk-${sdkVersion()}`,
  label: "the official download",
  pinned: {},
  fetch: (folder, context) =>
    fetchTemporalArtifact(
      folder,
      {
        artifact: "temporal-test-server",
        version: "default",
        query: { "sdk-name": "sdk-typescript", "sdk-version": sdkVersion() },
        executable: "temporal-test-server",
      },
      context,
    ),
};

const MAVEN_TIMEOUT_MS = 300_000;
const DEPENDENCY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:2.8";
// options for both of Maven's transports, so that an unreachable repository fails within seconds
const MAVEN_QUICK = [
  "-Daether.connector.connectTimeout=8000",
  "-Daether.connector.requestTimeout=8000",
  "-Dmaven.wagon.http.retryHandler.count=1",
  "-Dmaven.wagon.rto=8000",
];

const pom = (version: string): string =>
  `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>local</groupId><artifactId>test-server</artifactId><version>1</version>
<dependencies><dependency><groupId>io.temporal</groupId><artifactId>temporal-test-server</artifactId>
<version>${version}</version></dependency></dependencies></project>
`;

/**
 * Wraps the jars in the one executable file that the SDK expects. The class path names each pinned jar, so that nothing
 * else in the folder is ever run.
 */
function wrapperScript(): string {
  const classPath = Object.keys(JARS.sha256).map((name) => `$here/lib/${name}`);
  return `#!/bin/sh
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd) || exit 1
exec "\${JAVA_HOME:+$JAVA_HOME/bin/}java" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \\
  -cp "${classPath.join(":")}" io.temporal.testserver.TestServer "$@"
`;
}

const maven: Fetcher = {
  id: `maven-${JARS.version}`,
  label: "Maven",
  pinned: Object.fromEntries(Object.entries(JARS.sha256).map(([name, sha256]) => [`lib/${name}`, sha256])),
  async fetch(folder, { env }) {
    const build = path.join(folder, "build");
    await mkdir(build);
    await writeFile(path.join(build, "pom.xml"), pom(JARS.version));
    const lib = path.join(folder, "lib");
    const copy = [`${DEPENDENCY_PLUGIN}:copy-dependencies`, `-DoutputDirectory=${lib}`];
    await runTool("mvn", ["-B", "-q", ...MAVEN_QUICK, ...copy], {
      env,
      cwd: build,
      timeoutMs: MAVEN_TIMEOUT_MS,
    });
    await rm(build, { recursive: true });
    await writeFile(path.join(folder, "temporal-test-server"), wrapperScript());
    return "temporal-test-server";
  },
};

/** The time-skipping test server. It has no address; each test starts its own. */
export const TEST_SERVER: Engine<never> = {
  name: "temporal-test-server",
  variable: "TEMPORAL_TEST_SERVER",
  remedy:
    "Put temporal-test-server on PATH or set TEMPORAL_TEST_SERVER to it; or install Java 11 and Maven, " +
    "with which it can be fetched.",
  address: () => null,
  probe: probeListens,
  fetchers: [officialDownload, maven],
};
