import { packageVersion } from "../../src/lib/package-root.ts";

export const IMPLEMENTATION = { name: "agent-spending-control", version: packageVersion() };
