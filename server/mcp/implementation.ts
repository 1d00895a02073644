import { packageVersion } from "../../src/lib/package-root.ts";

/** The service's name and version for MCP clients. */
export const IMPLEMENTATION = { name: "agent-spending-control", version: packageVersion() };
