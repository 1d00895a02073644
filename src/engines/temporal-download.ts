import { z } from "zod";
import { downloadText } from "./download.ts";
import { EngineError } from "./errors.ts";
import { fetchArchive } from "./fetch-archive.ts";
import type { ResolveContext } from "./resolver.ts";

/** Response of temporal.download to the same look-up that @temporalio/testing makes. */
const locationSchema = z.object({ archiveUrl: z.url(), fileToExtract: z.string().min(1) });

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" };

export interface TemporalArtifact {
  readonly artifact: "cli" | "temporal-test-server";
  /** `v1.5.1`, or `default` with the SDK's name and version in `query`. */
  readonly version: string;
  readonly query: Readonly<Record<string, string>>;
  readonly executable: string;
}

/** Fetches one of Temporal's own binaries from the official download; throws EngineError FETCH_FAILED. */
export async function fetchTemporalArtifact(
  folder: string,
  artifact: TemporalArtifact,
  context: ResolveContext,
): Promise<string> {
  const arch = ARCHITECTURES[process.arch];
  if (arch === undefined) throw new EngineError("FETCH_FAILED", `there is no download for ${process.arch}`);
  const lookUp = new URL(`/${artifact.artifact}/${artifact.version}`, context.hosts.temporal);
  const query = { arch, platform: process.platform, format: "tar.gz", ...artifact.query };
  for (const [name, value] of Object.entries(query)) lookUp.searchParams.set(name, value);
  const answer = await downloadText(lookUp, context.limits);
  const { archiveUrl, fileToExtract } = locationSchema.parse(JSON.parse(answer));
  const url = new URL(archiveUrl);
  if (lookUp.protocol === "https:" && url.protocol !== "https:") {
    throw new EngineError("FETCH_FAILED", `${lookUp.host} names an address without TLS`);
  }
  return fetchArchive(folder, { url, member: fileToExtract, executable: artifact.executable }, context);
}
