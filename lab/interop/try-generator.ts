import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { installed, PROGRAMS, runAll, runLine } from "./commands.ts";
import type { Generator } from "./generators.ts";
import type { Scene } from "./scene.ts";

export const DOCUMENTS = ["openapi.json", "openapi-3.0.json"] as const;

/** Generates a client of the document, compiles it, and has it create an agent and make its first payment. */
export async function tryGenerator(
  { baseUrl, organizationKey, teamId }: Scene,
  generator: Generator,
  document: (typeof DOCUMENTS)[number],
  place: string,
  done: (step: string) => void,
): Promise<void> {
  const tools = await installed(generator);
  await mkdir(place);
  const answer = await fetch(`${baseUrl}/v1/${document}`);
  if (!answer.ok) throw new Error(`${document} was answered ${String(answer.status)}`);
  await writeFile(join(place, "document.json"), await answer.text());
  await runAll(generator.generate(tools), place);
  done("loads");
  const [source, name] = generator.program;
  await copyFile(join(PROGRAMS, source), join(place, name));
  await runAll(generator.compile(tools), place);
  done("compiles");
  const secrets = { BASE_URL: baseUrl, ORGANIZATION_KEY: organizationKey, TEAM_ID: teamId };
  const env = { ...process.env, ...secrets, RUN: `${generator.name}-${document}` };
  const status = (await runLine(generator.pay(tools), place, env)).trim();
  if (status !== "approved") throw new Error(`the payment is ${status}`);
  done("pays");
}
