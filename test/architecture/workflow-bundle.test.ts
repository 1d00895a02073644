import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { WORKFLOW_BUNDLE } from "../../server/workflow-bundle.ts";
import { PACKAGE_ROOT } from "../../src/lib/package-root.ts";

/** Modules of packages that a workflow has no business with; their paths stand in the bundle's text. */
const FOREIGN = /node_modules\/(zod|mongodb|express|@noble)\//;

describe("the workflow bundle", () => {
  it("holds every workflow type, and nothing of zod or any other package but Temporal's", async () => {
    const code = await readFile(WORKFLOW_BUNDLE.codePath, "utf8");
    const entry = await readFile(join(PACKAGE_ROOT, "workflows", "index.ts"), "utf8");
    const files = [...entry.matchAll(/from "\.\/([\w-]+)\.ts"/g)].map(([, file = ""]) => file);
    expect(files).to.include.members(["agent", "ledger", "approval", "settlement"]);
    for (const file of files) expect(code, file).to.match(new RegExp(`workflows/${file}\\.js`));
    expect(code, "a package's modules stand in it by their paths").to.include("node_modules/@temporalio/");
    expect(FOREIGN.exec(code)).to.equal(null);
    expect(code.includes(PACKAGE_ROOT), "a path of the machine that built it").to.equal(false);
  });

  it("has one barrel file, its entry: no other file on the way in re-exports", async () => {
    const folders = ["workflows", "src/domain", "src/messages"];
    const found: string[] = [];
    for (const folder of folders) {
      for (const file of await readdir(join(PACKAGE_ROOT, folder), { recursive: true })) {
        const path = join(folder, file);
        if (!path.endsWith(".ts") || path === join("workflows", "index.ts")) continue;
        const text = await readFile(join(PACKAGE_ROOT, path), "utf8");
        if (/^export (\*|\{[^}]*\}) from/m.test(text)) found.push(path);
      }
    }
    expect(found).to.deep.equal([]);
  });

  it("has no asynchronous update validator or handler; such a validator would wedge its workflow", async () => {
    const files = (await readdir(join(PACKAGE_ROOT, "workflows"))).filter((file) => file.endsWith(".ts"));
    for (const file of files) {
      const text = await readFile(join(PACKAGE_ROOT, "workflows", file), "utf8");
      expect(text, file).to.not.match(/validator:\s*async/);
      expect(text, file).to.not.match(/setHandler\(\s*\w+,\s*async/);
    }
    const actor = await readFile(join(PACKAGE_ROOT, "workflows", "agent.ts"), "utf8");
    expect(actor, "the actor's one update answers without waiting").to.match(
      /\n {2}submit\(commands[^)]*\): SubmitResult/,
    );
  });
});
