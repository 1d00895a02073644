import { expect } from "chai";
import { parse } from "csv-parse/sync";
import { DateTime } from "luxon";
import { z } from "zod";
import type { TransactionDocument } from "../../src/store/documents.ts";
import { csvRow } from "../../src/lib/csv.ts";
import { collectionsOf } from "../../src/store/collections.ts";
import { codeOf } from "../support/contract-api.ts";
import { ForgetfulCounts } from "../support/forgetful-counts.ts";
import { boundKeys, type Placed, populate, transactionOf } from "../support/payments-in-place.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { someOrAll } from "../support/soak.ts";
import { newWorld, organizationKey, times, until, type World } from "../support/world.ts";

/** The columns, written out once more. */
const COLUMNS = [
  "id",
  "createdAt",
  "agentId",
  "agentName",
  "merchant",
  "amountCents",
  "currency",
  "direction",
  "rail",
  "status",
  "purpose",
  "denialReason",
  "denialCode",
  "onChainTxHash",
  "chainCaip2",
  "requestedCents",
  "authorizedCents",
  "capturedCents",
  "creditedCents",
  "stage",
  "breach",
  "amount",
  "resource",
  "protocol",
  "receipt",
];

type Query = Readonly<Record<string, string>>;
type Row = Readonly<Record<string, string>>;

const cells = z.array(z.array(z.string()));

/** The file as an independent reader takes it: its rows by the names of its columns. */
function rowsOf(text: unknown): readonly Row[] {
  const [header, ...rows] = cells.parse(parse(z.string().parse(text), { record_delimiter: "\r\n" }));
  expect(header).to.deep.equal(COLUMNS);
  return rows.map((row) => Object.fromEntries(COLUMNS.map((column, index) => [column, row[index] ?? ""])));
}

/** Exports are few a minute, and most tests are not about that. */
const counts = new ForgetfulCounts();

async function exported(world: World, query: Query = {}, token = world.token): Promise<readonly Row[]> {
  counts.forget();
  const answer = await world.api.call("exportTransactions", { token, query });
  expect(answer.status, JSON.stringify(answer.body)).to.equal(200);
  return rowsOf(answer.body);
}

const shownTimes = async (world: World, query: Query) =>
  (await exported(world, query)).map(({ createdAt }) => createdAt);

/** A query that is none. */
async function refusedFor(world: World, query: Query): Promise<void> {
  counts.forget();
  await world.api.refused("exportTransactions", 400, "VALIDATION_FAILED", { token: world.token, query });
}

/** What a cell says of a field. */
const cellOf = (value: unknown): string =>
  z.union([z.string(), z.number()]).nullish().parse(value)?.toString() ?? "";

const idsOf = (rows: readonly Row[]): readonly string[] => rows.map(({ id = "" }) => id);

describe("the export of transactions", () => {
  let service: TestService;
  let world: World;
  let placed: readonly Placed[];
  after(() => service.stop());
  before(async () => {
    service = await startTestService({ counts });
    world = await newWorld(service);
    placed = await populate(world);
  });

  const put = async (
    ...records: readonly Partial<TransactionDocument>[]
  ): Promise<readonly TransactionDocument[]> => {
    const { organizationId } = world.organization;
    const [place] = placed;
    if (place === undefined) throw new Error("somebody lies somewhere");
    const made = records.map((fields) => transactionOf(organizationId, place, fields));
    await collectionsOf(world.service.db).transactions.insertMany(made);
    return made;
  };
  beforeEach(async () => {
    counts.forget();
    const { organizationId } = world.organization;
    await collectionsOf(world.service.db).transactions.deleteMany({ organizationId });
  });

  it("is a CSV attachment whose every column says what the list says of the payment", async () => {
    const agent = await world.agent({ autoApprovalThresholdCents: 500 });
    await agent.pay({ amountCents: 123, merchant: 'Anna\'s, "the" shop', purpose: "first\r\nsecond line" });
    await agent.pay({ merchant: "sandbox-decline" });
    await agent.hold({ amountCents: 600 });
    await put({ rail: "wallet", onChainTxHash: `0x${"ab".repeat(32)}`, chainCaip2: "eip155:31337" });
    const answer = await world.api.call("exportTransactions", { token: world.token });
    expect(answer.headers.get("content-type")).to.equal("text/csv; charset=utf-8");
    expect(answer.headers.get("content-disposition")).to.equal('attachment; filename="transactions.csv"');
    const { transactions } = await world.api.ok("listTransactions", 200, { token: world.token });
    const rows = rowsOf(answer.body);
    expect(rows).to.have.lengthOf(4);
    const listed = transactions.map((each) =>
      Object.fromEntries(
        COLUMNS.map((column) => [
          column,
          cellOf(Object.entries({ ...each, ...each.amounts }).find(([name]) => name === column)?.[1]),
        ]),
      ),
    );
    expect(rows).to.deep.equal(listed);
  });

  it("says what the network charged and gave back, and which limits that exceeded", async () => {
    await put({
      amounts: { requestedCents: 100, authorizedCents: 100, capturedCents: 120, creditedCents: 30 },
      breach: [
        { level: "agent", limit: "per_transaction", overCents: 20 },
        { level: "team", limit: "cap", overCents: 5 },
      ],
    });
    const answer = await world.api.call("exportTransactions", { token: world.token });
    const [row] = rowsOf(answer.body);
    expect(row).to.deep.include({
      requestedCents: "100",
      authorizedCents: "100",
      capturedCents: "120",
      creditedCents: "30",
      stage: "captured",
      breach: "agent per_transaction 20, team cap 5",
    });
  });

  it("ends every line with CRLF, and is a header alone where there is nothing", async () => {
    const answer = await world.api.call("exportTransactions", { token: world.token });
    expect(answer.body).to.equal(`${COLUMNS.join(",")}\r\n`);
    await put({}, {});
    const two = await world.api.call("exportTransactions", { token: world.token });
    expect(String(two.body).split("\r\n")).to.have.lengthOf(4);
    expect(String(two.body).replaceAll("\r\n", "")).not.to.match(/[\r\n]/);
  });

  it("begins with a byte order mark only where `bom=true` asks for it", async () => {
    const [plain, marked] = await Promise.all(
      ["", "?bom=true"].map(async (search) => {
        const url = `${world.service.baseUrl}/v1/transactions/export${search}`;
        const answer = await fetch(url, { headers: { authorization: `Bearer ${world.token}` } });
        return Buffer.from(await answer.arrayBuffer())
          .subarray(0, 5)
          .toString("latin1");
      }),
    );
    expect([plain, marked]).to.deep.equal(["id,cr", "\u00ef\u00bb\u00bfid"]);
    await refusedFor(world, { bom: "yes" });
  });

  it("shows instants as the clocks of the asked zone do, over its changes; by default in UTC", async () => {
    const instants = [
      "2026-03-29T00:59:59.999Z",
      "2026-03-29T01:00:00.000Z",
      "2026-10-25T00:59:59.999Z",
      "2026-10-25T01:00:00.000Z",
      "2026-07-01T12:34:56.789Z",
      "2026-01-01T00:00:00.000Z",
      "2025-12-31T23:30:00.001Z",
    ];
    await put(...instants.map((at) => ({ createdAt: new Date(at) })));
    const newestFirst = instants.toSorted().toReversed();
    expect(await shownTimes(world, {})).to.deep.equal(newestFirst);
    expect(await shownTimes(world, { tz: "UTC" })).to.deep.equal(newestFirst);
    const zones = [
      "Europe/Berlin",
      "America/St_Johns",
      "Asia/Kathmandu",
      "Pacific/Apia",
      "Australia/Lord_Howe",
    ];
    for (const zone of someOrAll([...zones, "Etc/GMT+5", "Africa/Abidjan"], 2))
      expect(await shownTimes(world, { tz: zone }), zone).to.deep.equal(
        newestFirst.map((at) => DateTime.fromISO(at, { zone }).toISO()),
      );
    expect(await shownTimes(world, { tz: "Europe/Berlin" })).to.include.members([
      "2026-03-29T01:59:59.999+01:00",
      "2026-03-29T03:00:00.000+02:00",
      "2026-10-25T02:59:59.999+02:00",
      "2026-10-25T02:00:00.000+01:00",
    ]);
    expect(await shownTimes(world, { tz: "aSIA/kATHMANDU" })).to.deep.equal(
      await shownTimes(world, { tz: "Asia/Kathmandu" }),
    );
    for (const tz of ["Mars/Olympus", "+02:00", "", "Europe/Berlin ", "SystemV/PST8", "IST"])
      await refusedFor(world, { tz });
  });

  it("takes the list's filters and four statuses; paging and other statuses are refused", async () => {
    const agent = await world.agent({ budgetCents: 1_000 });
    await agent.pay();
    await agent.pay({ amountCents: 5_000 });
    await put(
      { status: "reversed" },
      { status: "failed", rail: "wallet" },
      { createdAt: new Date(0), status: "denied" },
    );
    const all = await exported(world);
    expect(all).to.have.lengthOf(5);
    const filters: readonly Query[] = [
      { agentId: agent.id },
      { agent_id: agent.id },
      { type: "wallet" },
      { range: "7d" },
      { projectId: world.organization.projectId },
      { teamId: world.organization.teamId, status: "denied" },
      ...["approved", "pending", "denied", "failed"].map((status) => ({ status })),
    ];
    for (const query of someOrAll(filters, 5)) {
      const { transactions } = await world.api.ok("listTransactions", 200, { token: world.token, query });
      expect(idsOf(await exported(world, query)), JSON.stringify(query)).to.deep.equal(
        transactions.map(({ id }) => id),
      );
    }
    for (const query of [
      { limit: "5" },
      { cursor: "x" },
      { status: "reversed" },
      { status: "expired" },
      { type: "cash" },
    ] as const)
      await refusedFor(world, query);
  });

  it("holds what lies in a key's binding; ids of others give a header alone", async () => {
    const { organizationId } = world.organization;
    const records = placed.flatMap((place) => times(3, () => transactionOf(organizationId, place)));
    await collectionsOf(world.service.db).transactions.insertMany(records);
    const other = await newWorld(world.service);
    const foreign = await other.agent();
    await foreign.pay();
    for (const { token, within } of Object.values(await boundKeys(world, placed))) {
      const inside = records.filter((record) =>
        Object.entries(within).every(([field, id]) => record[field] === id),
      );
      expect(new Set(idsOf(await exported(world, {}, token)))).to.deep.equal(
        new Set(inside.map(({ _id }) => _id)),
      );
      const { projectId, teamId } = other.organization;
      for (const query of [{ agentId: foreign.id }, { teamId }, { projectId }] as Query[])
        expect(await exported(world, query, token)).to.deep.equal([]);
    }
    const outside = placed.at(-1);
    const { team } = await boundKeys(world, placed);
    const { projectId = "", teamId = "" } = outside ?? {};
    for (const query of [{ teamId }, { projectId }] as Query[])
      expect(await exported(world, query, team.token)).to.deep.equal([]);
    const blind = await organizationKey(world, { scopes: ["agents:write"] });
    await world.api.refused("exportTransactions", 403, "INSUFFICIENT_SCOPE", { token: blind.token });
  });

  it("ten times a minute by a credential", async () => {
    // Where a minute ends in between there are two to share them: then once more.
    await until("ten of eleven in one minute", async () => {
      counts.forget();
      const { token } = world;
      const answers = await Promise.all(times(11, () => world.api.call("exportTransactions", { token })));
      const refused = answers.map(codeOf).filter((code) => code !== null);
      return refused.length === 0 ? null : expect(refused).to.deep.equal(["RATE_LIMITED"]);
    });
  });
});

describe("a row of a file of comma-separated values", () => {
  it("no cell is run as a formula", () => {
    const shown: readonly (readonly [text: string, shown: string])[] = [
      ...["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\u00a0@x", '=1,"2"', "  -2", "\tshop", '"=1'].map(
        (text) => [text, `'${text}`] as const,
      ),
      // Full-width, small and superscript signs; invisible characters before one.
      ...["＝1", "＋1", "－1", "＠x", "﹦1", "⁼1", "\u200b=1", "\ufeff\u2060＝1", "\u{e0041}\u00ad-1"].map(
        (text) => [text, `'${text}`] as const,
      ),
      // Spreadsheets split cells at semicolons, tabs or line ends, quoted or not.
      ["x;=cmd|'/C calc'!A0;y", "x;'=cmd|'/C calc'!A0;y"],
      ["x;\"=cmd|'/C calc'!A0;y", "x;'\"=cmd|'/C calc'!A0;y"],
      ["x; \u200b＝1", "x;' \u200b＝1"],
      ["x\t=1\t+2", "x\t'=1\t'+2"],
      ["x\r\n@y", "x\r\n'@y"],
      ["\t=1", "'\t'=1"],
      ["\n=1", "'\n'=1"],
      ["=1;-2", "'=1;'-2"],
      ...["a=1", "1-2", "'=1", "shop", "#x", " a", "0x12", "a; b", "a, -b", "Zoë & Söhne", "x;y=1", "€5"].map(
        (text) => [text, text] as const,
      ),
    ];
    const file = shown.map(([text]) => csvRow([text])).join("");
    for (const cell of file.split(/[;\t\r\n]/)) {
      expect(cell.replace(/^[\s"\u200b]+/, "").normalize("NFKC")).not.to.match(/^[=+\-@]/);
    }
    const rows = cells.parse(parse(file, { record_delimiter: "\r\n" }));
    expect(rows).to.deep.equal(shown.map(([, expected]) => [expected]));
  });
});
