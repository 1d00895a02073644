import { expect } from "chai";
import type { AgentDocument, TransactionDocument } from "../../activities/documents.ts";
import type { CardLedgerDocument } from "../../activities/rails/card-sandbox.ts";
import { type Collections, collectionsOf } from "../../server/collections.ts";
import { askEach } from "../../server/admin/reconcile/ask-each.ts";
import type { Difference } from "../../server/admin/reconcile/difference.ts";
import { type Reconciled, reconcileOn } from "../../server/admin/reconcile/reconcile.ts";
import { reconciledJson, reconciledText } from "../../server/admin/reconcile/text.ts";
import { TemporalCalls } from "../../server/actors/calls.ts";
import { TemporalActors } from "../../server/actors/temporal.ts";
import { agentWorkflowId } from "../../src/messages/agent.ts";
import { entriesOf } from "../audit/support.ts";
import { Child, cleanEnvironment } from "../support/process.ts";
import { sideBySide } from "../support/side-by-side.ts";
import { elevate, newWorld, type TestAgent, times, until, type World } from "../support/world.ts";

/** Longer than a record is behind its actor, shorter than a sweep: for what is not repaired by waiting. */
const SHORT_MS = 1_500;
/** Longer than anything is under way while nothing is killed. */
const LONG_MS = 20_000;
const REST_MS = 120_000;

/** What is altered by hand, with the payments that there are to be altered. */
interface Scene {
  readonly agent: TestAgent;
  /** Closed: approved, with its capture. */
  readonly paid: string;
  /** On hold. */
  readonly held: string;
  /** Closed: denied by the owner. */
  readonly denied: string;
  readonly books: Collections;
}

interface Case {
  readonly what: string;
  readonly alter: (scene: Scene) => Promise<unknown>;
  /** Kinds of what is found, sorted, each once. */
  readonly found: readonly string[];
  /** Whether `--repair` may write all of it. */
  readonly repairs: boolean;
}

const CASES: readonly Case[] = [
  {
    what: "an agent's record with other totals",
    alter: ({ agent, books }) => books.agents.updateOne({ _id: agent.id }, { $inc: { spentCents: 1 } }),
    found: ["agent_record_differs"],
    repairs: true,
  },
  {
    what: "an agent's record with another state and policy",
    alter: ({ agent, books }) =>
      books.agents.updateOne(
        { _id: agent.id },
        { $set: { lifecycle: "paused", "policy.budgetCents": 1, policyVersion: 7 } },
      ),
    found: ["agent_record_differs"],
    repairs: true,
  },
  {
    what: "an agent's record from before",
    alter: ({ agent, books }) =>
      books.agents.updateOne(
        { _id: agent.id },
        { $set: { accountRevision: 1, spentCents: 0, reservedCents: 0 } },
      ),
    found: ["agent_record_differs"],
    repairs: true,
  },
  {
    what: "an agent's record that is ahead of its actor",
    alter: ({ agent, books }) => books.agents.updateOne({ _id: agent.id }, { $inc: { revision: 100 } }),
    found: ["agent_record_differs"],
    repairs: false,
  },
  {
    what: "an agent's record that is ahead of its account",
    alter: ({ agent, books }) =>
      books.agents.updateOne({ _id: agent.id }, { $inc: { accountRevision: 100 } }),
    found: ["agent_record_differs"],
    repairs: false,
  },
  {
    what: "an agent's record with another name and end",
    alter: ({ agent, books }) =>
      books.agents.updateOne({ _id: agent.id }, { $set: { name: "Another", walletDetached: true } }),
    found: ["agent_record_differs"],
    repairs: true,
  },
  {
    what: "an agent's record that is lost",
    alter: ({ agent, books }) => books.agents.deleteOne({ _id: agent.id }),
    found: ["agent_record_lost"],
    repairs: false,
  },
  {
    what: "an agent's record without an actor and an account",
    alter: async ({ agent, books }) => {
      const record = await recorded<AgentDocument>(books.agents.findOne({ _id: agent.id }));
      await books.agents.insertOne({ ...record, _id: `${agent.id}-copy`, key: null });
    },
    found: ["account_lost", "actor_lost"],
    repairs: false,
  },
  {
    what: "a payment on hold whose record is lost",
    alter: ({ books, held }) => books.transactions.deleteOne({ _id: held }),
    found: ["payment_record_differs"],
    repairs: true,
  },
  {
    what: "a payment on hold whose record says that it was paid",
    alter: ({ books, held }) => books.transactions.updateOne({ _id: held }, { $set: { status: "approved" } }),
    found: ["card_ledger_differs", "payment_record_differs"],
    repairs: true,
  },
  {
    what: "a payment on hold whose record has another amount",
    alter: ({ books, held }) => books.transactions.updateOne({ _id: held }, { $inc: { amountCents: 1 } }),
    found: ["payment_record_differs"],
    repairs: true,
  },
  {
    what: "a payment on hold whose record could not restore its ledger",
    alter: ({ books, held }) =>
      books.transactions.updateOne({ _id: held }, { $set: { "ledgerState.proof": "another" } }),
    found: ["payment_record_differs"],
    repairs: true,
  },
  {
    what: "a payment on hold whose approval is lost",
    alter: ({ books, held }) => books.approvals.deleteOne({ transactionId: held }),
    found: ["approval_record_differs"],
    repairs: true,
  },
  {
    what: "a payment on hold whose approval says that it was decided",
    alter: ({ books, held }) =>
      books.approvals.updateOne({ transactionId: held }, { $set: { state: "completed" } }),
    found: ["approval_record_differs"],
    repairs: true,
  },
  {
    what: "an ended payment whose approval still waits",
    alter: ({ books, denied }) =>
      books.approvals.updateOne({ transactionId: denied }, { $set: { state: "pending" } }),
    found: ["approval_record_differs"],
    repairs: false,
  },
  {
    what: "a paid payment whose record is lost",
    alter: ({ books, paid }) => books.transactions.deleteOne({ _id: paid }),
    found: ["card_ledger_differs", "payment_record_lost", "payments_sum_differs"],
    repairs: false,
  },
  {
    what: "a paid payment whose record has another amount",
    alter: ({ books, paid }) => books.transactions.updateOne({ _id: paid }, { $inc: { amountCents: -1 } }),
    found: ["card_ledger_differs", "payments_sum_differs"],
    repairs: false,
  },
  {
    what: "a paid payment whose record says that it is pending",
    alter: ({ books, paid }) => books.transactions.updateOne({ _id: paid }, { $set: { status: "pending" } }),
    found: ["card_ledger_differs", "payment_record_differs", "payments_sum_differs"],
    repairs: false,
  },
  {
    what: "a payment's record that no ledger has decided",
    alter: async ({ books, denied }) => {
      const record = await recorded<TransactionDocument>(books.transactions.findOne({ _id: denied }));
      await books.transactions.insertOne({ ...record, _id: `${denied}X`, keyHash: "another", sequence: 99 });
    },
    found: ["payment_record_unknown"],
    repairs: false,
  },
  {
    what: "a payment without its capture",
    alter: ({ books, paid }) => books.cardLedger.deleteOne({ transactionId: paid }),
    found: ["card_ledger_differs"],
    repairs: false,
  },
  {
    what: "a payment that was captured twice",
    alter: ({ books, paid }) => copyCapture(books, paid, { status: "captured" }),
    found: ["card_ledger_differs"],
    repairs: false,
  },
  {
    what: "a payment that was given back without anybody's knowing",
    alter: ({ books, paid }) => copyCapture(books, paid, { status: "reversed" }),
    found: ["card_ledger_differs"],
    repairs: false,
  },
  {
    what: "a capture of another amount",
    alter: ({ books, paid }) =>
      books.cardLedger.updateOne({ transactionId: paid }, { $inc: { amountCents: 1 } }),
    found: ["card_ledger_differs"],
    repairs: false,
  },
  {
    what: "a denied payment that was captured",
    alter: ({ books, denied, paid }) => copyCapture(books, paid, { transactionId: denied }),
    found: ["card_ledger_differs"],
    repairs: false,
  },
];

async function recorded<T>(record: Promise<T | null>): Promise<T> {
  const there = await record;
  if (there === null) throw new Error("a record is missing before it is altered");
  return there;
}

async function copyCapture(books: Collections, paid: string, change: Partial<CardLedgerDocument>) {
  const capture = await recorded<CardLedgerDocument>(books.cardLedger.findOne({ transactionId: paid }));
  await books.cardLedger.insertOne({ ...capture, _id: `${capture._id}/again`, ...change });
}

const kindsOf = (differences: readonly Difference[]): readonly string[] =>
  [...new Set(differences.map(({ kind }) => kind))].toSorted();

const run = ({ organization, service }: World, repair = false, patienceMs = SHORT_MS): Promise<Reconciled> =>
  reconcileOn(service.connections, service.env, {
    organizationId: organization.organizationId,
    repair,
    patienceMs,
    onProgress: () => undefined,
  });

async function capTeam({ api, organization, token }: World): Promise<void> {
  const id = organization.teamId;
  const { agents, version } = await api.ok("getTeamBudget", 200, { token, id });
  await api.ok("setTeamBudget", 200, { token, id, body: { capCents: 5_000_000, agents, version } });
}

/** An agent under a cap with a payment of each kind. */
async function newScene(world: World): Promise<Scene> {
  const agent = await world.agent({ autoApprovalThresholdCents: 500 });
  const paid = (await agent.pay({ amountCents: 300 })).transaction.id;
  const held = (await agent.hold({ amountCents: 600 })).transactionId;
  const other = await agent.hold({ amountCents: 700 });
  const body = { feedback: "No." };
  await world.api.ok("denyApproval", 200, { token: world.token, id: other.approvalId, body });
  return { agent, paid, held, denied: other.transactionId, books: collectionsOf(world.service.db) };
}

const actorsOf = ({ service }: World): TemporalActors =>
  new TemporalActors(new TemporalCalls(service.connections.temporal, "unused"));

/** Waits until the ledger has let go of what has ended and knows it to be written, so that nobody writes altered records again. */
const atRest = (world: World, { agent, held }: Scene): Promise<true> =>
  until(
    "the agent is at rest",
    async () => {
      const { projectId } = world.organization;
      const { accounts } = await actorsOf(world).books(projectId, { after: null, limit: 250 });
      const account = accounts.find(({ agentId }) => agentId === agent.id);
      if (account === undefined) throw new Error("an agent has no account");
      const { confirmedRevision, open, revision } = account;
      const ids = open.map(({ payment }) => payment.request.transactionId);
      return confirmedRevision === revision && ids.join(" ") === held ? true : null;
    },
    REST_MS,
  );

/** Archives an agent; its account is dropped and its actor ends, which it does by itself once no key is to be delivered any more. */
async function archiveWhole(world: World, { agent }: Scene): Promise<void> {
  const { api, organization, service, token } = world;
  await elevate(world);
  await api.ok("archiveAgent", 200, { token, id: agent.id });
  await until(
    "the archived agent's account is dropped",
    async () => {
      const page = await actorsOf(world).books(organization.projectId, { after: null, limit: 1 });
      return page.droppedAccounts === 1 ? true : null;
    },
    REST_MS,
  );
  await service.connections.temporal.workflow.getHandle(agentWorkflowId(agent.id)).terminate();
}

describe("npm run admin -- reconcile", () => {
  describe("of books that were altered by hand", () => {
    const scenes = new Map<string, Scene>();
    let first: Reconciled;
    let second: Reconciled;

    before(async () => {
      const world = await newWorld();
      await capTeam(world);
      await askEach(CASES, async ({ what }) => scenes.set(what, await newScene(world)));
      await Promise.all([...scenes.values()].map((scene) => atRest(world, scene)));
      for (const { alter, what } of CASES) await alter(sceneOf(what));
      first = await run(world, true);
      second = await run(world);
    });

    function sceneOf(what: string): Scene {
      const scene = scenes.get(what);
      if (scene === undefined) throw new Error(`no scene for ${what}`);
      return scene;
    }

    const of = ({ agent, paid }: Scene, differences: readonly Difference[]): readonly Difference[] =>
      differences.filter(({ agentId, id }) => agentId?.startsWith(agent.id) === true || id === paid);

    for (const { alter: _alter, found: wanted, repairs, what } of CASES) {
      it(`finds ${what}; ${repairs ? "repairs it for good" : "invents nothing for it"}`, () => {
        const scene = sceneOf(what);
        expect(kindsOf(of(scene, first.differences)), reconciledText(first)).to.deep.equal(wanted);
        expect(of(scene, first.left).length === 0, reconciledText(first)).to.equal(repairs);
        expect(kindsOf(of(scene, second.differences)), reconciledText(second)).to.deep.equal(
          repairs ? [] : wanted,
        );
        if (!repairs) return;
        const written = [scene.agent.id, scene.held];
        expect(first.repaired.filter(({ id }) => written.includes(id))).to.have.lengthOf(1);
      });
    }
  });

  describe("of an archived agent, whose actor has ended and whose account is dropped", () => {
    let world: World;
    let scene: Scene;

    before(async () => {
      world = await newWorld();
      await capTeam(world);
      scene = await newScene(world);
      await newScene(world);
      await archiveWhole(world, scene);
    });

    it("finds nothing where its records agree", async () => {
      const result = await run(world, false, LONG_MS);
      expect(result.differences, reconciledText(result)).to.deep.equal([]);
      expect(result).to.include({ agents: 2, payments: 6, projects: 1 });
    });

    it("finds a payment of it that was altered, up to the totals of team and project", async () => {
      const { books, paid } = scene;
      await books.transactions.updateOne({ _id: paid }, { $inc: { amountCents: -1 } });
      const result = await run(world, true);
      const found = result.left.map(({ id, kind }) => `${kind} ${id}`).toSorted();
      const { projectId, teamId } = world.organization;
      expect(found, reconciledText(result)).to.deep.equal(
        [
          `card_ledger_differs ${paid}`,
          `payments_sum_differs ${scene.agent.id}`,
          `totals_differ ${projectId}`,
          `totals_differ ${teamId}`,
        ].toSorted(),
      );
    });
  });

  // Each in an organization of its own.
  sideBySide({
    "finds an account that was told of another key, and repairs nothing": async () => {
      const world = await newWorld();
      const scene = await newScene(world);
      const { agent } = scene;
      await atRest(world, scene);
      const { organizationId, projectId } = world.organization;
      const told = { revision: 10_000, name: "Another", keyId: null, isArchived: false };
      const command = { kind: "follow_agent", agentId: agent.id, ...told } as const;
      await actorsOf(world).submitToLedger({ organizationId, projectId }, [command]);
      const result = await run(world, true);
      expect(kindsOf(result.differences), reconciledText(result)).to.deep.equal(["account_differs"]);
      expect(result.left).to.have.lengthOf(2);
      expect(JSON.parse(reconciledJson(result))).to.deep.include({ agents: 1, projects: 1, repaired: [] });
    },

    "finds caps that were altered in the records of team and project, and repairs them": async () => {
      const world = await newWorld();
      await capTeam(world);
      const books = collectionsOf(world.service.db);
      const { projectId, teamId } = world.organization;
      const capOf = async () => (await books.teams.findOne({ _id: teamId }))?.cap;
      const before = await until("the cap is recorded", async () => (await capOf()) ?? null);
      await books.teams.updateOne({ _id: teamId }, { $set: { "cap.capCents": null } });
      await books.projects.updateOne({ _id: projectId }, { $set: { cap: { capCents: 1, version: 9 } } });
      const result = await run(world, true);
      expect(kindsOf(result.differences), reconciledText(result)).to.deep.equal(["container_record_differs"]);
      expect(
        result.left.map(({ id }) => id),
        "a record that is ahead is left alone",
      ).to.deep.equal([projectId]);
      expect(await capOf()).to.deep.equal(before);
    },

    "as a command: prints what differs, fails while it does, and no more once it is repaired": async () => {
      const world = await newWorld();
      const { service, organization } = world;
      const { agent, books } = await newScene(world);
      const env = { ...cleanEnvironment(), ...service.env };
      const command = async (...options: readonly string[]) => {
        const args = ["reconcile", "--organization", organization.organizationId, ...options];
        const child = Child.node("server/main.ts", ["admin", ...args], env);
        const { code } = await child.exit(REST_MS);
        return { code, text: child.stdout, said: child.stderr };
      };
      const healthy = await command();
      expect(healthy, healthy.said).to.deep.include({ code: 0 });
      expect(healthy.text).to.match(/1 agent, 3 payments compared\. Everything agrees\./);
      await books.agents.updateOne({ _id: agent.id }, { $set: { spentCents: 9 } });
      const differing = await command("--json");
      expect(differing.code, differing.said).to.equal(1);
      expect(JSON.parse(differing.text)).to.have.nested.property("left[0].kind", "agent_record_differs");
      const repaired = await command("--repair");
      expect(repaired.code, repaired.text).to.equal(0);
      expect(repaired.text).to.match(new RegExp(`^repaired ${agent.id}: wrote the agent's record`, "m"));
      expect((await command()).text).to.contain("Everything agrees.");
      const entries = await entriesOf(service.db, organization.organizationId);
      const kept = entries.filter(({ action }) => action === "reconcileRepair");
      expect(kept, "looking leaves no entry").to.have.lengthOf(1);
      expect(kept[0]).to.deep.include({
        from: { address: null, surface: "admin", via: "reconcile --repair" },
      });
      expect(kept[0]).to.have.nested.property("after.repaired[0].id", agent.id);
    },

    "finds nothing in a healthy service, however busy it is meanwhile": async () => {
      const world = await newWorld();
      await capTeam(world);
      const agents = await Promise.all(times(6, () => world.agent({ autoApprovalThresholdCents: 450 })));
      const load = { isStopped: false };
      const merchants = ["shop", "sandbox-decline", "sandbox-reverse", "sandbox-slow", "sandbox-flaky"];
      const clients = agents.map(async (agent, client) => {
        for (let number = 1; !load.isStopped; number += 1) {
          const merchant = merchants[(client + number) % merchants.length] ?? "shop";
          const { approval } = await agent.pay({ amountCents: 1 + ((number * 97) % 500), merchant });
          if (approval === null || number % 2 === 0) continue;
          // On a busy machine an approval may be answered 503 and come true all the same; the next call is then a conflict.
          const approved = await world.api.call("approveApproval", { token: world.token, id: approval.id });
          expect([200, 409, 503]).to.include(approved.status);
        }
      });
      const results: Reconciled[] = [];
      for (let round = 0; round < 2; round += 1) results.push(await run(world, false, LONG_MS));
      load.isStopped = true;
      await Promise.all(clients);
      results.push(await run(world, false, LONG_MS));
      expect(results.flatMap(({ differences }) => differences)).to.deep.equal([]);
      expect(results.at(-1)?.payments).to.be.greaterThan(agents.length);
    },
  });
});
