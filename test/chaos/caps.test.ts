import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { z } from "zod";
import type { TransactionDocument } from "../../src/store/documents.ts";
import { untilNothingIsMissing } from "../../lab/chaos/until.ts";
import { freshSeed, Random } from "../../lab/random.ts";
import { createOrganization } from "../../server/admin/create-organization.ts";
import { reconcile } from "../../server/admin/reconcile/reconcile.ts";
import { reconciledText } from "../../server/admin/reconcile/text.ts";
import { collectionsOf } from "../../src/store/collections.ts";
import { connectMongo } from "../../src/store/connections.ts";
import { Api } from "../support/api.ts";
import { PASSWORD, WITHOUT_LIMITS } from "../support/service.ts";
import { isSoak } from "../support/soak.ts";
import { roleEnvironment, Roles } from "../restart/support/roles.ts";
import { type Accepted, passedCaps, type SetCap } from "./caps/observed.ts";
import { type Member, type Order, type Place, type Reached, Workload } from "./caps/workload.ts";

const TEAMS = 3;
const AGENTS = 9;
/** Before the kill, while one server is down, and after it is back. */
const LOAD_MS = isSoak ? ([7_000, 1_000, 7_000] as const) : ([2_000, 1_000, 2_000] as const);
/** A workload that does less proves nothing. */
const ACCEPTED_MIN = 11;
const CAPS_MIN = 3;
/** How long a busy machine has for that. */
const ENOUGH_MS = 200_000;
const BY_CAPS = ["TEAM_CAP_EXCEEDED", "PROJECT_CAP_EXCEEDED"];
const APPROVAL_WINDOW_SECONDS = 4;
/** What a killed server had in hand, the actor takes up after 10 s. */
const SWEPT_MS = 20_000;
const PATIENCE_MS = 40_000;

const created = z.object({ team: z.object({ id: z.string() }) });

const accepted = (change: Partial<Accepted>): Accepted => ({
  id: "txn",
  teamId: "team",
  amountCents: 60,
  sentAt: 10,
  acceptedBy: 20,
  usedUntil: Infinity,
  ...change,
});
const cap = (change: Partial<SetCap>): SetCap => ({
  level: "team",
  capCents: 100,
  sentAt: 0,
  appliedBy: 5,
  ...change,
});
const second = accepted({ id: "second", sentAt: 30, acceptedBy: 40 });

describe("the audit of caps", () => {
  const cases: readonly [string, readonly Accepted[], readonly SetCap[], number][] = [
    ["a payment above what is left", [accepted({}), second], [cap({})], 1],
    ["the same under the project's cap", [accepted({}), second], [cap({ level: "project" })], 1],
    ["nothing where it fits to the cent", [accepted({ amountCents: 40 }), second], [cap({})], 0],
    ["nothing where the first may have been given back", [accepted({ usedUntil: 35 }), second], [cap({})], 0],
    [
      "nothing where a higher cap may have been in force",
      [accepted({}), second],
      [cap({}), cap({ capCents: 120, sentAt: 35, appliedBy: 50 })],
      0,
    ],
    [
      "a payment after the cap was lowered",
      [accepted({}), second],
      [cap({ capCents: 200 }), cap({ sentAt: 21, appliedBy: 29 })],
      1,
    ],
    ["nothing in another team", [accepted({ teamId: "other" }), second], [cap({})], 0],
  ];
  for (const [what, payments, caps, count] of cases) {
    it(`finds ${what}`, () => {
      expect(passedCaps(payments, caps)).to.have.lengthOf(count);
    });
  }
});

describe("caps on both levels, on real engines", () => {
  const env = { ...roleEnvironment(), APPROVAL_WINDOW_SECONDS: String(APPROVAL_WINDOW_SECONDS) };
  const roles = new Roles(env);
  after(() => roles.stop());

  const ownerEmail = "owner@example.com";

  async function reach(baseUrl: string): Promise<Reached> {
    const api = new Api(baseUrl);
    return { api, token: await api.signIn(ownerEmail, PASSWORD) };
  }

  async function newPlace(baseUrl: string): Promise<Place & { readonly organizationId: string }> {
    const owner = { name: "Caps", ownerEmail, ownerPassword: PASSWORD };
    const { organizationId, projectId, teamId } = await createOrganization(env, {
      ...owner,
      ...WITHOUT_LIMITS,
    });
    const { api, token } = await reach(baseUrl);
    const teamIds = [teamId];
    while (teamIds.length < TEAMS) {
      const body = { projectId, name: `Team ${String(teamIds.length + 1)}` };
      teamIds.push(created.parse((await api.call("POST", "/v1/teams", { token, body })).body).team.id);
    }
    const members: Member[] = [];
    for (let number = 0; number < AGENTS; number += 1) {
      const own = teamIds[number % TEAMS] ?? teamId;
      // A third of them asks a person above some amount, a third always, a third never.
      const autoApprovalThresholdCents = [null, 450, 0][Math.floor(number / TEAMS) % 3];
      const made = await api.createAgent(token, own, { budgetCents: 60_000, autoApprovalThresholdCents });
      members.push({ id: made.agent.id, apiKey: made.apiKey, teamId: own });
    }
    return { organizationId, projectId, teamIds, members };
  }

  /** What clients know, with the end that each payment has come to. */
  async function acceptedOf(workload: Workload): Promise<readonly Accepted[]> {
    const { db, mongo } = await connectMongo(env.MONGODB_URI);
    try {
      const records = await collectionsOf(db).transactions.find({}).toArray();
      const orders = new Map(workload.orders.map((order) => [order.transactionId, order]));
      return records.flatMap((record) => {
        const order = orders.get(record._id);
        const wasAccepted = record.status !== "denied" || record.approvalId !== null;
        return order === undefined || !wasAccepted ? [] : [asAccepted(order, record, workload)];
      });
    } finally {
      await mongo.close();
    }
  }

  function asAccepted(order: Order, record: TransactionDocument, workload: Workload): Accepted {
    const { amountCents, answeredAt, member, requests, sentAt } = order;
    const decidedAt = workload.decided.get(record._id) ?? Infinity;
    const answered = answeredAt ?? Infinity;
    const isHeld = record.approvalId !== null;
    const expiresAt = record.createdAt.getTime() + APPROVAL_WINDOW_SECONDS * 1_000;
    const archivedAt = workload.archived.get(member.id) ?? Infinity;
    const releasedAt = isHeld ? Math.min(decidedAt, expiresAt, archivedAt) : sentAt;
    return {
      id: record._id,
      teamId: record.teamId,
      amountCents,
      sentAt,
      // Whose server was killed may have been taken up by the actor, some time after its client was answered.
      acceptedBy: requests > 1 ? answered + SWEPT_MS : answered,
      usedUntil: record.status === "approved" ? Infinity : releasedAt,
    };
  }

  it("under payments, cap changes and a kill no cap is passed, and all books agree to the cent", async () => {
    const seed = freshSeed();
    process.stdout.write(`    seed ${String(seed)}\n`);
    const [first, other] = await Promise.all([roles.startServer(), roles.startServer(), roles.startWorker()]);
    const place = await newPlace(first.baseUrl);
    const servers = [await reach(first.baseUrl), await reach(other.baseUrl)];
    const workload = new Workload(place, new Random(seed), () => servers);

    await sleep(LOAD_MS[0]);
    await first.child.end("SIGKILL");
    await sleep(LOAD_MS[1]);
    servers[0] = await reach((await roles.startServer()).baseUrl);
    await sleep(LOAD_MS[2]);
    try {
      await untilNothingIsMissing(`the workload of seed ${String(seed)}`, ENOUGH_MS, () => lackOf(workload));
    } finally {
      await workload.stop();
    }
    const payments = await acceptedOf(workload);
    const result = await reconcile(env, {
      organizationId: place.organizationId,
      repair: false,
      patienceMs: PATIENCE_MS,
      onProgress: () => undefined,
    });

    const said = `seed ${String(seed)}\n${reconciledText(result)}`;
    expect(workload.oddities, said).to.deep.equal([]);
    expect(result.differences, said).to.deep.equal([]);
    expect(passedCaps(await acceptedOf(workload), workload.caps), said).to.deep.equal([]);
    const seen = JSON.stringify({ accepted: payments.length, all: result.payments, ...workload.changes });
    process.stdout.write(`    ${seen}\n`);
  });

  /** What the workload has not done yet. */
  async function lackOf(workload: Workload): Promise<string | null> {
    const { length } = await acceptedOf(workload);
    if (length < ACCEPTED_MIN) return `${String(length)} payments were accepted`;
    if (workload.caps.length < CAPS_MIN) return `${String(workload.caps.length)} caps were set`;
    const denied = (await denialCodes()).some((code) => BY_CAPS.includes(code));
    return denied ? null : "no cap denied a payment";
  }

  async function denialCodes(): Promise<readonly string[]> {
    const { db, mongo } = await connectMongo(env.MONGODB_URI);
    try {
      const codes = await collectionsOf(db).transactions.distinct("denialCode");
      return codes.filter((code) => code !== null);
    } finally {
      await mongo.close();
    }
  }
});
