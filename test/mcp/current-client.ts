import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { z } from "zod";
import { noteSecretsGiven } from "../support/secrets.ts";
import type { ToolResult } from "./support.ts";

export const CURRENT_REVISION = "2026-07-28";

export type Mode = "auto" | { readonly pin: string };

const body = z.record(z.string(), z.unknown());

/** The official client of the protocol's current revision, with a key; it validates what tools answer by their schemas. */
export async function connectCurrent(
  baseUrl: string,
  key: string,
  mode: Mode = { pin: CURRENT_REVISION },
): Promise<Client> {
  const client = new Client({ name: "test", version: "1.0.0" }, { versionNegotiation: { mode } });
  const requestInit = { headers: { authorization: `Bearer ${key}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${baseUrl}/mcp`), { requestInit }));
  // Only of tools that it has seen does it know the schema.
  await client.listTools();
  return client;
}

/** A tool's result by that client. */
export async function callCurrent(
  client: Client,
  name: string,
  args: Readonly<Record<string, unknown>>,
): Promise<ToolResult> {
  const result = await client.callTool({ name, arguments: { ...args } });
  const answered = body.parse(result.structuredContent);
  noteSecretsGiven(answered);
  return { isError: result.isError === true, body: answered };
}
