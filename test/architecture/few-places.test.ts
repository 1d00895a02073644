import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { operationList } from "../../src/contract/registry.ts";
import { ALL_PAYMENT_TOOLS, RAIL_OF, railPayment } from "../../src/contract/rails.ts";
import { LABELS } from "../../src/domain/agent/labels.ts";
import { EVENT_TYPES } from "../../src/domain/events.ts";
import { RAILS } from "../../src/domain/ledger/payment.ts";
import { RULE_TYPES } from "../../src/domain/rules/rules.ts";
import { sourceFiles } from "./imports.ts";

/** Where every operation has its place, as CONTRIBUTING.md says: its definition, its route in the client, its handler. */
const PLACES = [/^src\/contract\/operations\//, /^src\/client\/routes\.ts$/, /^server\/handlers\//];
/** Places of those that change something: what is followed live, and the audit log's words. */
const OF_CHANGES: readonly string[] = ["src/changes/kinds.ts", "src/client/audit-actions.ts"];

/** Operations that some other place has to know by their names, and why. */
const KNOWN_ELSEWHERE: Readonly<Record<string, readonly string[]>> = {
  // Browsers keep what they answer in cookies.
  "server/http/browser-sessions.ts": [
    "acceptInvite",
    "checkInvite",
    "checkSetUp",
    "refreshSession",
    "setUp",
    "signIn",
    "signOut",
  ],
  // They hash passwords, or are judged by the agent's ledger.
  "server/http/rest.ts": ["acceptInvite", "changePassword", "createPayment", "setUp", "signIn"],
  // A wrong password is answered as slowly as an unknown address.
  "server/pipeline/pipeline.ts": ["signIn"],
  // A task of the protocol stands for a payment on hold.
  "server/mcp/tasks.ts": ["cancelPayment", "createCardPayment", "createWalletPayment", "getPayment"],
  // What is called the same and is none: a rate class, and what access says of second factors.
  "src/contract/rate-classes.ts": ["signIn", "stepUp"],
  "src/contract/access.ts": ["stepUp"],
  // A field that only its answer has.
  "src/contract/openapi/glossary/audit-log.ts": ["updateAgentBudgetPolicy"],
};

/** An operation's id as a name: a key, a handler's method or a literal, not a service's method that is called the same. */
const named = (id: string): RegExp =>
  new RegExp(`"${id}"|^ {2,4}(?:async )?${id}[(:]|export const ${id}\\b|: ${id}\\b`, "m");

/** What else has to be at most in so many files, generated ones, tests and documents left out. */
const PLACES_MAX = 4;

/** Rule types whose names nothing else has, events, and the label of agents that is called like nothing else. */
const SUBJECTS: readonly string[] = [
  ...RULE_TYPES.filter((type) => type.includes("_") || type === "velocity"),
  ...EVENT_TYPES,
  ...LABELS.filter((label) => label !== "description"),
];

/** A file of the product, the dashboard included, and what it says. */
async function productTexts(): Promise<(readonly [file: string, text: string])[]> {
  const web = (await readdir("web/src", { recursive: true })).filter((file) => /\.tsx?$/.test(file));
  const files = [...(await sourceFiles()), ...web.map((file) => join("web/src", file))];
  return Promise.all(files.map(async (file) => [file, await readFile(file, "utf8")] as const));
}

/** A literal, or the key or field of something. */
const mentions = (name: string, text: string): boolean =>
  new RegExp(`"${name}"|^ +(?:readonly )?${name}[?]?[:({]|[.]${name}\\b|[{,] ${name}\\b`, "m").test(text);

const FOLDERS = /^(?:src\/(?:contract|client|changes)|server)\//;

describe("an operation", () => {
  it("has its definition, its route, its handler and its changes, and is known nowhere else", async () => {
    const files = (await sourceFiles()).filter((file) => FOLDERS.test(file));
    const texts = await Promise.all(files.map(async (file) => [file, await readFile(file, "utf8")] as const));
    const wrong: string[] = [];
    for (const [id, { http }] of operationList) {
      const pattern = named(id);
      // What is a tool alone has no route.
      const needed = http === null ? PLACES.filter((place) => !place.test("src/client/routes.ts")) : PLACES;
      const places = texts.filter(([, text]) => pattern.test(text)).map(([file]) => file);
      const own = places.filter(
        (file) => PLACES.some((place) => place.test(file)) || OF_CHANGES.includes(file),
      );
      const elsewhere = places.filter((file) => !own.includes(file));
      const unknown = elsewhere.filter((file) => KNOWN_ELSEWHERE[file]?.includes(id) !== true);
      if (unknown.length > 0) wrong.push(`${id} is known in ${unknown.join(", ")}`);
      for (const place of needed) {
        if (!own.some((file) => place.test(file))) wrong.push(`${id} is in no ${String(place)}`);
      }
      if (own.length > 6) wrong.push(`${id} has ${String(own.length)} places: ${own.join(", ")}`);
    }
    expect(wrong).to.deep.equal([]);
  });

  it("each exception that is named is one", async () => {
    for (const [file, ids] of Object.entries(KNOWN_ELSEWHERE)) {
      const text = await readFile(file, "utf8");
      for (const id of ids) expect(named(id).test(text), `${file} ${id}`).to.equal(true);
    }
  });
});

/** Each table of rails has a row for this one, and nothing else is called so but a drawing and a style. */
const A_RAIL = /(?<!className=)"card"|^ *card:|\.card\b/m;
const NO_RAILS: readonly string[] = ["web/src/icons.tsx"];

describe("a rail", () => {
  it(`is in at most ${String(PLACES_MAX)} files`, async () => {
    const texts = (await productTexts()).filter(([file]) => !NO_RAILS.includes(file));
    const places = texts.filter(([, text]) => A_RAIL.test(text)).map(([file]) => file);
    expect(places).to.include("src/domain/ledger/payment.ts");
    expect(places.length, places.join(", ")).to.be.at.most(PLACES_MAX);
  });
});

describe("the contract's payments", () => {
  it("have one for each rail, and a tool that pays by it", () => {
    const rails = railPayment.options.map(({ shape }) => shape.rail.value);
    expect(rails).to.have.members([...RAILS]);
    expect(ALL_PAYMENT_TOOLS.map((tool) => RAIL_OF[tool])).to.have.members([...RAILS]);
  });
});

describe("a rule type, an event and a label of agents", () => {
  it(`is in at most ${String(PLACES_MAX)} files each`, async () => {
    const texts = await productTexts();
    const places = SUBJECTS.map((name) => ({
      name,
      files: texts.filter(([, text]) => mentions(name, text)).map(([file]) => file),
    }));
    expect(places.filter(({ files }) => files.length > PLACES_MAX)).to.deep.equal([]);
    expect(
      places.filter(({ files }) => files.length === 0),
      "a name that is found nowhere",
    ).to.deep.equal([]);
  });
});
