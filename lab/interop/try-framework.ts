import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createClient, valueOf } from "../../src/client/client.ts";
import { AGENT_TOOLS } from "../../src/contract/tool-names.ts";
import { EngineError } from "../../src/engines/errors.ts";
import { installed, runAll } from "./commands.ts";
import type { Framework } from "./frameworks.ts";
import type { Scene } from "./scene.ts";
import { SCRIPT, type ScriptedModel, startModel } from "./scripted-model.ts";

/** Keeps frameworks from reporting to their makers and from asking on a terminal. */
const QUIET = {
  CREWAI_DISABLE_TELEMETRY: "true",
  CREWAI_TRACING_ENABLED: "false",
  OPENAI_AGENTS_DISABLE_TRACING: "true",
  OTEL_SDK_DISABLED: "true",
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  N8N_DIAGNOSTICS_ENABLED: "false",
};

/** Runs the snippet that the service shows for the framework, with a new agent's key: a scripted model pays by it. */
export async function tryFramework(
  { baseUrl, organizationKey, teamId }: Scene,
  framework: Framework,
  place: string,
  done: (step: string) => void,
): Promise<void> {
  const { client, name } = framework;
  const tools = await installed(framework);
  await mkdir(place);
  const service = createClient({ baseUrl, credential: { type: "bearer", token: organizationKey } });
  const { agent, apiKey } = valueOf(
    await service.createAgent({ body: { name, teamId, budgetCents: 10_000, idempotencyKey: client } }),
  );
  const { clients, keyPlaceholder } = valueOf(await service.connectAgent({ id: agent.id }));
  const snippet = clients.find((each) => each.client === client);
  if (snippet === undefined) throw new Error(`there is no snippet for ${client}`);
  const file = join(place, snippet.place);
  await writeFile(file, snippet.text.replaceAll(keyPlaceholder, apiKey ?? ""));
  const model = await startModel();
  try {
    const own = { HOME: place, AGENT_KEY: apiKey ?? "" };
    await runAll(framework.run(tools), place, { ...process.env, ...QUIET, ...model.env, ...own });
  } catch (error) {
    throw withResults(error, model);
  } finally {
    await model.stop();
  }
  const missing = AGENT_TOOLS.filter((tool) => !model.offered.has(tool));
  if (missing.length > 0) throw new Error(`the model was not offered ${missing.join(", ")}`);
  done(`${String(model.offered.size)} tools`);
  const results = model.results();
  for (const [index, { answer, name: tool }] of SCRIPT.entries()) {
    const told = results[index] ?? "nothing";
    if (!told.includes(answer)) throw new Error(`of ${tool} the model was told: ${told}`);
  }
  done(`${String(results.length)} calls`);
  const { transactions } = valueOf(await service.listTransactions({ query: { agentId: agent.id } }));
  const statuses = transactions.map(({ status }) => status).join(", ");
  if (statuses !== "approved") throw new Error(`payments: ${statuses || "none"}`);
  done("pays");
}

function withResults(error: unknown, model: ScriptedModel): unknown {
  const results = model.results();
  if (!(error instanceof EngineError) || results.length === 0) return error;
  return new Error(`${error.message}; the model was told: ${results.join("; ")}`);
}
