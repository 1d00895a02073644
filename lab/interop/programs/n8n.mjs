// A person does this on n8n's canvas: chooses a credential in each of two nodes.
import { readFile, writeFile } from "node:fs/promises";

const { AGENT_KEY, OPENAI_API_KEY, OPENAI_BASE_URL } = process.env;
const CREDENTIALS = {
  Model: ["openAiApi", { apiKey: OPENAI_API_KEY, url: OPENAI_BASE_URL }],
  Spending: ["httpBearerAuth", { token: AGENT_KEY }],
};

const { nodes, ...rest } = JSON.parse(await readFile("workflow.json", "utf8"));
const chosen = nodes.map((node) => {
  const [type] = CREDENTIALS[node.name] ?? [];
  const credentials = type === undefined ? {} : { [type]: { id: node.name, name: node.name } };
  return { ...node, id: node.name, credentials };
});
const workflow = { id: "interop", name: "Interop", active: false, nodes: chosen, ...rest };
await writeFile("workflow.json", JSON.stringify(workflow));
const credentials = Object.entries(CREDENTIALS).map(([name, [type, data]]) => ({
  id: name,
  name,
  type,
  data,
}));
await writeFile("credentials.json", JSON.stringify(credentials));
