/** What the service calls itself to MCP clients. */
export const IMPLEMENTATION = { name: "agent-spending-control", version: "1.0.0" };
