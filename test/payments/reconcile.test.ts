import { randomUUID } from "node:crypto";
import { expect } from "chai";
import type { Reconciled } from "../../server/admin/reconcile/reconcile.ts";
import { reconciledJson, reconciledText } from "../../server/admin/reconcile/text.ts";
import { collectionsOf } from "../../src/store/collections.ts";
import { agentWorkflowId } from "../../src/messages/agent.ts";
import { entriesOf } from "../audit/support.ts";
import { Child, cleanEnvironment } from "../support/process.ts";
import { sideBySide } from "../support/side-by-side.ts";
import { shortOrSoak } from "../support/soak.ts";
import { elevate, newWorld, times, until, type World } from "../support/world.ts";
import {
  captureLess,
  actorsOf,
  atRest,
  capTeam,
  kindsOf,
  LONG_MS,
  newScene,
  REST_MS,
  run,
  type Scene,
} from "./reconcile-scenes.ts";

/** Archives an agent; its account is dropped and its actor ends, which it does by itself once no key is to be delivered any more. */
async function archiveWhole(world: World, { agent }: Scene): Promise<void> {
  const { api, organization, service, token } = world;
  await elevate(world);
  await api.ok("archiveAgent", 200, { token, id: agent.id });
  await until(
    "the archived agent's account is dropped",
    async () => {
      const page = await actorsOf(world).ledgerSnapshot(organization.projectId, { after: null, limit: 1 });
      return page.droppedAccounts === 1 ? true : null;
    },
    REST_MS,
  );
  await service.connections.temporal.workflow.getHandle(agentWorkflowId(agent.id)).terminate();
}

describe("npm run admin -- reconcile", () => {
  describe("of an archived agent, whose actor has ended and whose account is dropped", () => {
    let world: World;
    let scene: Scene;

    before(async () => {
      world = await newWorld();
      await capTeam(world);
      scene = await newScene(world);
      await newScene(world);
      const { approvalId: id } = await scene.agent.hold({ amountCents: 600, merchant: "sandbox-partial" });
      await world.api.ok("approveApproval", 200, { token: world.token, id });
      await archiveWhole(world, scene);
    });

    it("finds nothing where its records agree, also of an approved payment charged in part", async () => {
      const result = await run(world, false, LONG_MS);
      expect(result.differences, reconciledText(result)).to.deep.equal([]);
      expect(result).to.include({ agents: 2, payments: 7, projects: 1 });
    });

    it("finds a payment of it that was altered, up to the totals of team and project", async () => {
      const { books, paid } = scene;
      await captureLess(books, paid);
      const result = await run(world, true);
      const found = result.left.map(({ id, kind }) => `${kind} ${id}`).toSorted();
      const { projectId, teamId } = world.organization;
      expect(found, reconciledText(result)).to.deep.equal(
        [
          `card_ledger_differs ${paid}`,
          // Its books have no proof, and what it shows is not what they say.
          `payment_record_differs ${paid}`,
          `payment_record_differs ${paid}`,
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

    "takes no increase that has ended for a difference, and finds one that nobody granted": async () => {
      const world = await newWorld();
      const agent = await world.agent();
      await capTeam(world);
      expect((await run(world, false, LONG_MS)).differences).to.deep.equal([]);
      const { agents, teams } = collectionsOf(world.service.db);
      const kindsWith = async (endsAt: number): Promise<readonly string[]> => {
        const increases = [{ id: randomUUID(), limit: "daily_spend" as const, cents: 100, endsAt }];
        await agents.updateOne({ _id: agent.id }, { $set: { "policy.increases": increases } });
        await teams.updateOne({ _id: world.organization.teamId }, { $set: { "cap.increases": increases } });
        return kindsOf((await run(world)).differences);
      };
      expect(await kindsWith(Date.now())).to.deep.equal([]);
      const found = await kindsWith(Date.now() + 3_600_000);
      expect(found).to.deep.equal(["agent_record_differs", "container_record_differs"]);
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
      const scene = await newScene(world);
      await atRest(world, scene);
      const { agent, books } = scene;
      const env = { ...cleanEnvironment(), ...service.env };
      const command = async (...options: readonly string[]) => {
        const args = ["reconcile", "--organization", organization.organizationId, ...options];
        const child = Child.node("server/main.ts", ["admin", ...args], env);
        const { code } = await child.exit(REST_MS);
        return { code, text: child.stdout, said: child.stderr };
      };
      await books.agents.updateOne({ _id: agent.id }, { $set: { spentCents: 9 } });
      const differing = await command("--json");
      expect(differing.code, differing.said).to.equal(1);
      expect(JSON.parse(differing.text)).to.have.nested.property("left[0].kind", "agent_record_differs");
      const repaired = await command("--repair");
      expect(repaired.code, repaired.text).to.equal(0);
      expect(repaired.text).to.match(new RegExp(`^repaired ${agent.id}: wrote the agent's record`, "m"));
      const healthy = reconciledText(await run(world));
      expect(healthy).to.match(/\d agents?, 3 payments compared\. Everything agrees\./);
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
      const agents = await Promise.all(times(3, () => world.agent({ autoApprovalThresholdCents: 450 })));
      const load = { isStopped: false };
      const payments = shortOrSoak(20, 1_000);
      const merchants = ["shop", "sandbox-decline", "sandbox-reverse", "sandbox-slow", "sandbox-flaky"];
      const clients = agents.map(async (agent, client) => {
        for (let number = 1; number <= 5 || (!load.isStopped && number <= payments); number += 1) {
          const merchant = merchants[(client + number) % merchants.length] ?? "shop";
          const { approval } = await agent.pay({ amountCents: 1 + ((number * 97) % 500), merchant });
          if (approval === null || number % 2 === 0) continue;
          // On a busy machine an approval may be answered 503 and come true all the same; the next call is then a conflict.
          const approved = await world.api.call("approveApproval", { token: world.token, id: approval.id });
          expect([200, 409, 503]).to.include(approved.status);
        }
      });
      const results: Reconciled[] = [];
      for (let round = 0; round < shortOrSoak(1, 2); round += 1)
        results.push(await run(world, false, LONG_MS));
      load.isStopped = true;
      await Promise.all(clients);
      results.push(await run(world, false, LONG_MS));
      expect(results.flatMap(({ differences }) => differences)).to.deep.equal([]);
      expect(results.at(-1)?.payments).to.be.greaterThan(agents.length);
    },
  });
});
