import { readdir, readFile } from "node:fs/promises";
import { basename, dirname, extname, join, normalize } from "node:path";
import { expect } from "chai";
import { readConfig } from "../../server/config.ts";
import { enginePorts } from "../../src/engines/ports.ts";
import { loadTemporalDevConfig } from "../../src/engines/temporal-config.ts";
import { ROOMS, sourceFiles } from "./imports.ts";

const FOLDERS = [...ROOMS, "deploy", "docs", "lab", "scripts", "test", "web/src"];
const TEXTS = [".ts", ".tsx", ".mjs", ".js", ".md", ".sol", ".py", ".toml", ".yaml", ".css"];
/** Recorded or fetched from elsewhere, not written here. */
const FOREIGN = /^(test\/histories|contracts\/artifacts|lab\/fuzz\/.*\.json)/;

/** Every file that is written by hand, by its path. */
async function writtenFiles(): Promise<string[]> {
  const found = await Promise.all(
    FOLDERS.map(async (folder) =>
      (await readdir(folder, { recursive: true })).map((file) => join(folder, file)),
    ),
  );
  const top = await readdir(".");
  return [...top, ...found.flat()].filter((file) => TEXTS.includes(extname(file)) && !FOREIGN.test(file));
}

const documents = async (): Promise<string[]> =>
  (await writtenFiles()).filter((file) => file.endsWith(".md"));

/** The anchors of a document's headings, as GitHub makes them. */
const anchorsOf = (markdown: string): string[] =>
  [...markdown.replaceAll(/^```[\s\S]*?^```/gm, "").matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );

/** Where a document's links within the repository lead, as a path and perhaps an anchor. */
const linksOf = (file: string, markdown: string): { path: string; anchor: string | null }[] =>
  [...markdown.matchAll(/(?:\]\(|(?:src|srcset|href)=")([^)"\s]+)/g)]
    .map(([, target = ""]) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => {
      const [to = "", anchor = null] = target.split("#");
      return { path: to === "" ? file : normalize(join(dirname(file), to)), anchor };
    });

/** A file or folder in code type. */
const NAMED_PATH =
  /`((?:activities|contracts|docs|lab|scripts|server|src|test|web|workflows)\/[\w./-]*\w)\/?`/g;

/** A method of MCP that looks like one. */
const NOT_A_PATH: readonly string[] = ["server/discover"];

const words = (markdown: string): number => markdown.split(/\s+/).filter((word) => word !== "").length;

describe("the documents", () => {
  it("every link within the repository leads to a file and a heading that are there", async () => {
    const dead: string[] = [];
    let count = 0;
    for (const file of await documents()) {
      for (const { path, anchor } of linksOf(file, await readFile(file, "utf8"))) {
        count += 1;
        const target = await readFile(path, "utf8").catch(() => null);
        if (target === null || (anchor !== null && !anchorsOf(target).includes(anchor))) {
          dead.push(`${file}: ${path}${anchor === null ? "" : `#${anchor}`}`);
        }
      }
    }
    expect(dead).to.deep.equal([]);
    expect(count).to.be.greaterThan(150);
  });

  it("every page of docs/ can be reached from README by links", async () => {
    const reached = new Set(["README.md"]);
    for (const file of reached) {
      if (!file.endsWith(".md")) continue;
      for (const { path } of linksOf(file, await readFile(file, "utf8"))) reached.add(path);
    }
    const pages = (await documents()).filter((file) => file.startsWith("docs/"));
    expect(pages.filter((page) => !reached.has(page))).to.deep.equal([]);
  });

  it("every path of the source tree that a document names is there", async () => {
    const missing: string[] = [];
    for (const file of await documents()) {
      for (const [, path = ""] of (await readFile(file, "utf8")).matchAll(NAMED_PATH)) {
        const names = await readdir(dirname(path)).catch(() => []);
        // A test goes by its name without what all of them end in.
        const isThere = names.some(
          (name) => name === basename(path) || name.startsWith(`${basename(path)}.`),
        );
        if (!isThere && !NOT_A_PATH.includes(path)) missing.push(`${file}: ${path}`);
      }
    }
    expect(missing).to.deep.equal([]);
  });

  for (const [file, most] of [
    ["README.md", 800],
    ["docs/architecture.md", 1_400],
  ] as const) {
    it(`${file} is short enough to be read: ${most} words`, async () => {
      expect(words(await readFile(file, "utf8"))).to.be.at.most(most);
    });
  }
});

/** How the code reads a setting: from the environment by name, as a field of a schema, or as an engine's variable. */
const SETTING =
  /\benv\["([A-Z][A-Z0-9_]+)"\]|^ {2}([A-Z][A-Z0-9_]+): (?!\{)|\bvariable: "([A-Z_]+)"|\(env, "([A-Z_]+)"/gm;
/** What every program finds in its environment. */
const SYSTEM = ["HOME", "PATH", "XDG_CACHE_HOME"];
const SCHEMAS = ["server/config.ts", "server/chain.ts"];

/** The settings that the page has, with what it says of their defaults. */
const settingRows = async (): Promise<{ name: string; standard: string }[]> => {
  const text = await readFile("docs/configuration.md", "utf8");
  return [...text.matchAll(/^\| `([A-Z][A-Z0-9_]+)` +\| (.*?) +\|/gm)].map(
    ([, name = "", standard = ""]) => ({
      name,
      standard,
    }),
  );
};

describe("docs/configuration.md", () => {
  it("has every setting that the code reads, and no other", async () => {
    const read = new Set<string>();
    for (const file of await sourceFiles()) {
      for (const [, byName, field, variable, port] of (await readFile(file, "utf8")).matchAll(SETTING)) {
        const name = byName ?? variable ?? port ?? (SCHEMAS.includes(file) ? field : undefined);
        if (name !== undefined && !SYSTEM.includes(name)) read.add(name);
      }
    }
    expect((await settingRows()).map(({ name }) => name)).to.have.members([...read]);
  });

  it("a default that it names is the one of the code", async () => {
    const temporal = await loadTemporalDevConfig();
    const readAll = (env: NodeJS.ProcessEnv) => ({
      config: readConfig(env, "127.0.0.1"),
      ports: enginePorts(env, temporal),
    });
    for (const { name, standard } of await settingRows()) {
      const [, value] = /^`([^`]+)`$/.exec(standard) ?? [];
      if (value === undefined || name === "MCP_URL") continue;
      expect(readAll({ [name]: value }), name).to.deep.equal(readAll({}));
    }
  });
});

const textOf = (file: string): Promise<string> => readFile(join("deploy", file), "utf8");

describe("deploy", () => {
  it("rules and dashboard name metrics, and labels of them, that the service has", async () => {
    const page = await readFile("docs/metrics.md", "utf8");
    const rows = [...page.matchAll(/^\| `spending_control_(\w+)` +\| (\w+) +\| ([^|]*)\|/gm)];
    const labelsOf = new Map(
      rows.flatMap(([, name = "", kind, labels = ""]) =>
        (kind === "histogram" ? [`${name}_bucket`, `${name}_count`] : [name]).map((each) => [
          each,
          ["job", ...(labels.match(/[a-z_]+/g) ?? [])],
        ]),
      ),
    );
    const [alerts, dashboard] = [
      await textOf("helm/files/alerts.yaml"),
      await textOf("helm/files/dashboard.json"),
    ];
    const text = `${alerts}${dashboard.replaceAll('\\"', '"')}`;
    const uses = [...text.matchAll(/spending_control_(\w+)(?:\{([^}]*)\})?/g)];
    expect(uses.length).to.be.greaterThan(30);
    for (const [use, name = "", matchers = ""] of uses) {
      const labels = [...matchers.matchAll(/(\w+)=/g)].map(([, label]) => label);
      expect(labelsOf.get(name), use).to.include.members(labels);
    }
  });

  it("compose file, chart, unit and image set nothing that the service does not read", async () => {
    const known = (await settingRows()).map(({ name }) => name);
    const templates = await readdir("deploy/helm/templates");
    const chart = (await Promise.all(templates.map((name) => textOf(`helm/templates/${name}`)))).join("\n");
    const compose = await textOf("compose/compose.yaml");
    // Compose replaces names after a dollar sign everywhere, unless it is doubled.
    const replaced = [...compose.matchAll(/\$\$|\$\{?(\w*)/g)].flatMap(([, name]) => name ?? []);
    expect([...new Set(replaced)]).to.have.members(["HOST_NAME", "HTTPS_PORT", "POSTGRES_PASSWORD"]);
    const values = await textOf("helm/values.yaml");
    const image = await textOf("Containerfile");
    const unit = await textOf("systemd/agent-spending-control@.service");
    const env = await textOf("systemd/settings.env");
    const set = [
      ...(compose.split("x-mongo")[0] ?? "").matchAll(/^ {4}([A-Z_]+):/gm),
      ...compose.matchAll(/<<: \*settings, ([A-Z_]+):/g),
      ...(values.split(/^env:$/m)[1] ?? "").matchAll(/^ {2}([A-Z_]+):/gm),
      ...chart.matchAll(/- name: ([A-Z_]+)$/gm),
      ...(/^ENV (.*)$/m.exec(image)?.[1] ?? "").matchAll(/([A-Z_]+)=/g),
      ...(/^Environment=(.*)$/m.exec(unit)?.[1] ?? "").matchAll(/([A-Z_]+)=/g),
      ...env.matchAll(/^([A-Z_]+)=/gm),
    ].map(([, name = ""]) => name);
    expect(set.length).to.be.greaterThan(20);
    expect(set.filter((name) => ![...known, "NODE_ENV", "POD_IP"].includes(name))).to.deep.equal([]);
  });
});

/** What leads a reader to something that the repository does not have. */
const DANGLING: readonly RegExp[] = [
  /§/,
  /\b(?:sections?|chapters?) \d/i,
  /\bmanagement-api\b|(?<![\w/-])(?:decisions|design|examples)\.md\b|\bshared\//,
  /\bthe spec(?:ification)?\b(?! of )/i,
  /\b(?:decision|item|rule|point) (?:no\. ?)?\d+\b|\bissues? #?\d+\b/i,
  /(?:^|[\s(])#\d+\b/,
];
/** Places that may, since the document that they name is public. */
const PUBLIC = /\bRFC \d+|\bEIP-\d+|schemathesis|CommonMark/;
/** The patterns themselves, and the tests that look for them in answers. */
const EXEMPT = ["test/architecture/documents.test.ts", "test/contract/contract.test.ts"];

const danglingIn = (text: string): string[] =>
  text.split("\n").filter((line) => !PUBLIC.test(line) && DANGLING.some((pattern) => pattern.test(line)));

describe("references", () => {
  it("no text names a section, an issue or a document that is not in the repository", async () => {
    const found: string[] = [];
    for (const file of await writtenFiles()) {
      if (EXEMPT.includes(file)) continue;
      found.push(...danglingIn(await readFile(file, "utf8")).map((line) => `${file}: ${line.trim()}`));
    }
    expect(found).to.deep.equal([]);
  });

  it("what is forbidden is found, so that finding nothing means something", () => {
    const lines = [
      "as §4 has it",
      "see section 4.2",
      "as management-api says",
      "(decisions.md)",
      "the spec demands it",
      "see issue 12",
      "mended in #12",
      "by decision 7",
    ];
    expect(danglingIn(lines.join("\n"))).to.deep.equal(lines);
    const fine = ['color: "#102030"', "by RFC 9110, section 9.3", "the ledger's design", "4 items"];
    expect(danglingIn(fine.join("\n"))).to.deep.equal([]);
  });
});
