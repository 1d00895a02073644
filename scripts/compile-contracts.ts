import { staleArtifacts, writeArtifacts } from "./contracts/artifacts.ts";

// `npm run contracts`: compiles contracts/**/*.sol into contracts/artifacts. With `--check` it writes nothing, and fails
// when an artifact is not what its source says.
if (process.argv.includes("--check")) {
  const stale = await staleArtifacts();
  for (const name of stale) process.stderr.write(`contracts/artifacts/${name} is not what its source says\n`);
  process.exitCode = stale.length === 0 ? 0 : 1;
} else {
  const written = await writeArtifacts();
  for (const name of written) process.stdout.write(`contracts/artifacts/${name}\n`);
  if (written.length === 0) process.stdout.write("contracts/artifacts is what the sources say\n");
}
