// Adds to package-lock.json the optional platform packages that npm dropped because the registry in use
// does not carry them; without the entries `npm ci` stops with "Missing: ... from lock file".
// Run after every change of dependencies: `node scripts/complete-lock.mjs`, then `rm -rf node_modules && npm ci`.
import { readFileSync, writeFileSync } from "node:fs";

const file = new URL("../package-lock.json", import.meta.url);
const lock = JSON.parse(readFileSync(file, "utf8"));
const OSES = ["android", "darwin", "freebsd", "linux", "openharmony", "win32", "wasm32"];
const CPUS = ["arm64", "arm", "x64", "ia32", "ppc64", "riscv64", "s390x", "loong64", "mips64el", "wasm32"];

let added = 0;
for (const entry of Object.values(lock.packages)) {
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    const key = `node_modules/${name}`;
    const present = lock.packages[key];
    if (present?.version !== undefined || !/^\d/.test(version)) continue;
    const words = name.replace("amd64", "x64").split(/[/-]/);
    const os = OSES.find((candidate) => words.includes(candidate));
    const cpu = CPUS.find((candidate) => words.includes(candidate));
    if (os === undefined) continue;
    lock.packages[key] = { version, optional: true, os: [os], ...(cpu === undefined ? {} : { cpu: [cpu] }) };
    added += 1;
  }
}
lock.packages = Object.fromEntries(
  Object.entries(lock.packages).toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)),
);
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
process.stdout.write(`${added} platform packages added to the lock\n`);
