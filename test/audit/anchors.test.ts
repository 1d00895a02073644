import { expect } from "chai";
import { EventEmitter, once } from "node:events";
import { appendFile, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { AnchorFile, AnchorLog, openAnchorSink } from "../../src/audit/chain/anchor-file.ts";
import { AuditAnchoring } from "../../src/audit/chain/anchoring.ts";
import { AuditAppender } from "../../src/audit/chain/appender.ts";
import { readAnchors } from "../../src/audit/chain/verification.ts";
import { rootData, type RootTransaction } from "../../src/chain/audit-roots.ts";
import { verifyAuditLog } from "../../server/admin/verify-audit-log.ts";
import { createLogger, endLog } from "../../src/lib/logger.ts";
import { testLogger } from "../support/service.ts";
import { until } from "../support/world.ts";
import { testDatabase } from "../support/mongo.ts";
import { withHistory } from "./history.ts";
import { ownSeal } from "./support.ts";
import { recordOf } from "./tampering.ts";

const ANCHORED_MS = 120_000;
const now = () => new Date();
/** A chain that never answers. */
const silent = () => new Promise<never>(() => undefined);

describe("anchors of the audit log", () => {
  it("are written at intervals and at the end, readable by their owner only, with roots on chain", async () => {
    const world = await withHistory(1);
    const { env } = world.service;
    const path = String(env["AUDIT_ANCHOR_FILE"]);
    const linesOf = async (): Promise<Record<string, unknown>[]> =>
      (await readFile(path, "utf8").catch(() => ""))
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as Record<string, unknown>);
    try {
      await until(
        "a root on the chain",
        async () => (await linesOf()).find(({ kind }) => kind === "transaction") ?? null,
        ANCHORED_MS,
      );
      expect((await stat(path)).mode & 0o777).to.equal(0o600);
      const verdict = await until(
        "the chain shows it",
        async () => {
          const seen = await verifyAuditLog(env);
          return seen.onChain.confirmed > 0 ? seen : null;
        },
        ANCHORED_MS,
      );
      expect(verdict).to.include({ unbroken: true });
      expect(verdict.onChain).to.deep.include({ wrong: [], reachable: true });
      await world.api.ok("createProject", 201, { token: world.token, body: { name: "The last" } });
    } finally {
      await world.service.stop();
    }
    const lines = await linesOf();
    // What has not changed is not written down again, however often the interval ends.
    const anchored = lines.filter(({ kind }) => kind === "heads").map(({ root }) => root);
    expect(new Set(anchored).size).to.equal(anchored.length);
    const heads = lines.flatMap((line) => (line["heads"] ?? []) as { readonly sequence: number }[]);
    expect(heads.map(({ sequence }) => sequence)).to.deep.equal(
      [...new Set(heads.map(({ sequence }) => sequence))].toSorted((one, other) => one - other),
    );
    const last = lines.findLast(({ kind }) => kind === "heads");
    expect(last).to.nested.include({ "heads[0].organizationId": world.organization.organizationId });

    const transaction = lines.find(({ kind }) => kind === "transaction");
    const { mac: _mac, ...written } = { mac: null, ...transaction };
    const unsealed = { ...written, version: 1, root: "f".repeat(64) };
    await appendFile(path, `${JSON.stringify({ ...transaction, at: new Date().toISOString() })}\n`);
    await appendFile(path, `${JSON.stringify(unsealed)}\n`);
    const verdict = await verifyAuditLog(env);
    expect(verdict.unbroken).to.equal(false);
    expect(verdict.anchorFile.forgedLines, "a sealed line").to.deep.equal([lines.length + 1]);
    expect(verdict.onChain.wrong, "one from before they were sealed").to.deep.equal([transaction?.["hash"]]);

    const withoutAnchors = lines.filter(({ kind }) => kind === "transaction");
    for (const left of [withoutAnchors, lines.filter(({ root }) => root !== transaction?.["root"])]) {
      await writeFile(path, left.map((line) => `${JSON.stringify(line)}\n`).join(""));
      const { anchorFile, unbroken } = await verifyAuditLog(env);
      expect(unbroken).to.equal(false);
      expect(anchorFile.rootsWithoutAnchor).to.include(transaction?.["root"]);
    }
  });

  it("what could not be anchored at first is soon, however long the intervals are", async () => {
    const { db, close } = await testDatabase();
    const seal = ownSeal();
    const folder = join(await mkdtemp(join(tmpdir(), "anchors-")), "folder");
    await writeFile(folder, "in the way of a folder");
    const opened = openAnchorSink(join(folder, "anchors.jsonl"), testLogger("no-anchors"));
    expect(await opened.catch(String)).to.match(/^ConfigError: AUDIT_ANCHOR_FILE: [^\n]+\(\w+\)\.$/);
    const file = new AnchorFile(join(folder, "anchors.jsonl"));
    const log = new AuditAppender(db, seal);
    await log.append(recordOf(1));
    const trouble = new EventEmitter();
    const onWarning = () => void trouble.emit("one");
    const anchoring = new AuditAnchoring({ db, seal, sink: file, clock: now, recordRoot: null, onWarning });
    const rootsOf = async (): Promise<number> => (await readAnchors(file, seal)).roots.size;
    try {
      const failed = once(trouble, "one");
      anchoring.start(1_000, 0.02);
      await failed;
      await rm(folder);
      await until("the first anchor", async () => ((await rootsOf()) === 1 ? true : null));
    } finally {
      await anchoring.stop();
      await close();
    }
  });

  it("go to the log whatever its level is, in lines that a verification reads", async () => {
    const { db, close } = await testDatabase();
    const seal = ownSeal();
    const folder = await mkdtemp(join(tmpdir(), "anchors-"));
    const logger = createLogger({ level: "error", file: join(folder, "service.log") });
    const log = new AuditAppender(db, seal);
    await log.append(recordOf(1));
    const sink = new AnchorLog(logger);
    const warnings: string[] = [];
    const onWarning = (message: string) => void warnings.push(message);
    const anchoring = new AuditAnchoring({ db, seal, sink, clock: now, recordRoot: null, onWarning });
    await anchoring.stop();
    expect(warnings).to.deep.equal([]);
    await endLog(logger);
    const logged = (await readFile(join(folder, "service.log"), "utf8")).split("\n");
    const anchors = logged.flatMap((line) => {
      const { anchor } = line === "" ? { anchor: null } : (JSON.parse(line) as { anchor: unknown });
      return anchor === null ? [] : [`${JSON.stringify(anchor)}\n`];
    });
    const file = join(folder, "anchors.jsonl");
    await writeFile(file, anchors.join(""));
    const { byOrganization, roots } = await readAnchors(new AnchorFile(file), seal);
    expect([roots.size, byOrganization.size]).to.deep.equal([1, 1]);
    await close();
  });

  it("a foreign transaction with a root is none of the service's", async () => {
    const world = await withHistory();
    const { env } = world.service;
    await world.service.stop();
    const path = String(env["AUDIT_ANCHOR_FILE"]);
    const anchors = await readFile(path, "utf8");
    const { root } = z.object({ root: z.string() }).parse(JSON.parse(anchors));
    const ask = async (method: string, ...params: unknown[]): Promise<unknown> => {
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
      const headers = { "content-type": "application/json" };
      const answer = await fetch(String(env["EVM_RPC_URL"]), { method: "POST", headers, body });
      return z.object({ result: z.unknown() }).parse(await answer.json()).result;
    };
    const [from = ""] = z.array(z.string()).parse(await ask("eth_accounts"));
    const hash = z.string().parse(await ask("eth_sendTransaction", { from, to: from, data: rootData(root) }));
    await until("it is mined", async () => (await ask("eth_getTransactionReceipt", hash)) ?? null);
    const chain = `eip155:${Number(await ask("eth_chainId"))}`;
    const line = { version: 1, kind: "transaction", at: new Date().toISOString(), root, chain, from, hash };
    await appendFile(path, `${JSON.stringify(line)}\n`);
    const { onChain, unbroken } = await verifyAuditLog(env);
    expect([unbroken, onChain.wrong, onChain.confirmed]).to.deep.equal([false, [hash], 0]);
  });

  it("a root waiting at a stop is recorded by the next server, unless a later line names it", async () => {
    const database = await testDatabase();
    const seal = ownSeal();
    const path = join(await mkdtemp(join(tmpdir(), "anchors-")), "anchors.jsonl");
    const transaction = {
      chain: "eip155:1",
      from: `0x${"1".repeat(40)}`,
      hash: `0x${"2".repeat(64)}`,
    } as const;
    const anchoring = (recordRoot: (root: string) => Promise<RootTransaction>) => {
      const file = new AnchorFile(path);
      return new AuditAnchoring({
        db: database.db,
        seal,
        sink: file,
        clock: now,
        recordRoot,
        onWarning: () => undefined,
      });
    };
    const log = new AuditAppender(database.db, seal);
    try {
      for (const number of [1, 2]) {
        await log.append(recordOf(number));
        const away = anchoring(silent);
        away.start(1_000);
        // The chain never answers, and the last anchor is written all the same.
        await away.stop();
      }
      const asked: string[] = [];
      const next = anchoring(async (root) => {
        asked.push(root);
        return transaction;
      });
      next.start(1_000);
      const { roots, transactions } = await until("its line", async () => {
        const read = await readAnchors(new AnchorFile(path), seal);
        return read.transactions.length > 0 ? read : null;
      });
      await next.stop();
      expect(roots.size).to.equal(2);
      expect(asked).to.deep.equal([...roots].slice(-1));
      expect(transactions).to.have.lengthOf(1);
      // A root that a transaction carries is not sent again: the first that the next server sends is a new one.
      await log.append(recordOf(3));
      const sent: string[] = [];
      const again = anchoring((root) => {
        sent.push(root);
        return silent();
      });
      again.start(1_000);
      expect([...roots]).not.to.include(await until("a root is sent", async () => sent[0] ?? null));
      await again.stop();
    } finally {
      await database.close();
    }
  });
});
