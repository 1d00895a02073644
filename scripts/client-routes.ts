// Writes src/client/routes.ts: of the contract's routes what a client needs, without the contract itself. Run it after a change of a
// route (`npm run client-routes`); a test holds the file against the contract.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { clientRoutes } from "../src/contract/client-routes.ts";
import { PACKAGE_ROOT } from "../src/lib/package-root.ts";

const HEAD = `import type { ClientRoute } from "./types.ts";

/**
 * Where each operation is, and what of it a client has to know: written by \`npm run client-routes\` out of the contract, whose
 * schemas are many times as large, and held against it by a test.
 */
export const ROUTES = {
`;

const lines = Object.entries(clientRoutes()).map(
  ([id, { method, path, ...more }]) =>
    `  ${id}: { ${[`method: "${method}"`, `path: "${path}"`, ...Object.entries(more).map(([name, value]) => `${name}: ${JSON.stringify(value)}`)].join(", ")} },`,
);
await writeFile(
  join(PACKAGE_ROOT, "src", "client", "routes.ts"),
  `${HEAD}${lines.join("\n")}\n} as const satisfies Record<string, ClientRoute>;\n`,
);
