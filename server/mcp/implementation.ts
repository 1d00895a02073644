import { packageVersion } from "../../src/lib/package-root.ts";

/** What the service calls itself to MCP clients. */
export const IMPLEMENTATION = { name: "agent-spending-control", version: packageVersion() };
