import { expect } from "chai";
import { ChainVerifier } from "../../src/domain/audit/verify.ts";
import { codeOf } from "../support/contract-api.ts";
import { demote, newWorld, organizationKey, times, until, type World } from "../support/world.ts";
import { type Entry, LogReader, type Query } from "./log-reader.ts";
import { testSeal } from "./support.ts";

const NOBODY = "018f0000-0000-7000-8000-000000000000";

const minute = (): number => Math.floor(Date.now() / 60_000);

describe("reading the audit log", () => {
  let world: World;
  let log: LogReader;
  beforeEach(async () => {
    world = await newWorld();
    log = new LogReader(world);
  });

  async function someHistory(): Promise<{ readonly agentId: string; readonly keyId: string }> {
    const agent = await world.agent();
    const key = await organizationKey(world);
    const asked = { token: key.token, id: agent.id };
    for (const _turn of times(3, () => 0)) {
      await world.api.ok("pauseAgent", 200, asked);
      await world.api.ok("resumeAgent", 200, { ...asked, token: world.token });
    }
    return { agentId: agent.id, keyId: key.id };
  }

  it("is newest first, page by page, each entry once", async () => {
    await someHistory();
    const whole = (await log.list({ limit: "200" })).entries;
    const pages: Entry[] = [];
    let cursor: string | null = null;
    do {
      const query: Query = { limit: "4", ...(cursor === null ? {} : { cursor }) };
      const page = await log.list(query);
      pages.push(...page.entries);
      cursor = page.nextCursor;
    } while (cursor !== null);
    expect(pages).to.deep.equal(whole);
    expect(whole.map(({ sequence }) => sequence)).to.deep.equal(
      times(whole.length, (index) => whole.length - index),
    );
  });

  it("is narrowed by actor, resource, action and time; a cursor is good for its filters alone", async () => {
    const { agentId, keyId } = await someHistory();
    const whole = (await log.list({ limit: "200" })).entries;
    const middle = whole[4]?.at ?? "";
    const cases: readonly (readonly [Query, (entry: Entry) => boolean])[] = [
      [{ actor: keyId }, ({ actor }) => actor.id === keyId],
      [{ resource: agentId }, ({ resource }) => resource.id === agentId],
      [{ action: "pauseAgent" }, ({ action }) => action === "pauseAgent"],
      [{ from: middle }, ({ at }) => at >= middle],
      [{ to: middle }, ({ at }) => at < middle],
      [{ from: middle, to: middle }, () => false],
      [
        { actor: keyId, resource: agentId, action: "pauseAgent", from: middle },
        ({ action, actor, at }) => actor.id === keyId && action === "pauseAgent" && at >= middle,
      ],
      [{ actor: NOBODY }, () => false],
    ];
    for (const [query, isMeant] of cases) {
      const meant = whole.filter(isMeant);
      expect((await log.list({ limit: "200", ...query })).entries, JSON.stringify(query)).to.deep.equal(
        meant,
      );
      expect(await log.exported(query), JSON.stringify(query)).to.deep.equal(meant.toReversed());
    }
    const { nextCursor } = await log.list({ limit: "1", actor: keyId });
    const asked = { token: world.token, query: { limit: "1", cursor: nextCursor ?? "" } };
    await world.api.refused("listAuditLog", 400, "BAD_CURSOR", asked);
  });

  it("refuses filters that are none", async () => {
    for (const query of [{ from: "yesterday" }, { to: "2026" }, { actor: "" }, { who: "me" }] as Query[]) {
      for (const id of ["listAuditLog", "exportAuditLog"] as const) {
        await world.api.refused(id, 400, "VALIDATION_FAILED", { token: world.token, query });
      }
    }
  });

  it("an export is a chain that a holder of the key can check, line by line", async () => {
    await someHistory();
    const lines = await log.exported();
    const verifier = new ChainVerifier(testSeal(String(world.service.env["MASTER_KEY"])));
    for (const fields of lines) verifier.take({ position: fields.sequence, fields });
    expect(verifier.end()).to.equal(null);
    expect(verifier.checkedEntries).to.equal(lines.length);
  });

  it("is for owners and admins, of their own organization alone", async () => {
    const other = await newWorld(world.service);
    await other.agent();
    const mine = await log.exported();
    expect(new Set(mine.map(({ organizationId }) => organizationId))).to.deep.equal(
      new Set([world.organization.organizationId]),
    );
    const { organizationId } = other.organization;
    expect((await log.list({ resource: organizationId })).entries).to.deep.equal([]);
    await demote(world, "admin");
    await log.list();
    await demote(world, "member");
    for (const id of ["listAuditLog", "exportAuditLog"] as const) {
      await world.api.refused(id, 403, "ROLE_REQUIRED", { token: world.token });
    }
  });

  it("an export ten times a minute", async () => {
    const answers = await until("eleven in one minute of the clock", async () => {
      const { api, token } = await newWorld(world.service);
      const began = minute();
      const all = await Promise.all(times(11, () => api.call("exportAuditLog", { token })));
      return minute() === began ? all : null;
    });
    expect(answers.map(codeOf).filter((code) => code !== null)).to.deep.equal(["RATE_LIMITED"]);
  });
});
