import { expect } from "chai";
import type { StageOptions } from "./support/stage.ts";
import { FIRST_KEY, StagedAgent } from "./support/agent.ts";
import { actionsOf, activitiesOf, eventsOf, eventsUntil, silentTasksOf } from "./support/history.ts";
import { withAccount } from "./support/ledger.ts";
import {
  begin,
  byPerson,
  detailsOf,
  LINEAGE,
  machineArchive,
  replayOfCreate,
  ended,
} from "./support/life.ts";
import { useTimedStage } from "./support/timed.ts";

const play = useTimedStage();

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** A wallet that can be detached once it was tried so often. */
function detaching(fails: number): { readonly tried: string[]; readonly options: StageOptions } {
  const tried: string[] = [];
  const options: StageOptions = {
    activities: {
      detachWallet({ profile }) {
        tried.push(profile.agentId);
        return tried.length <= fails ? Promise.reject(new Error("no chain")) : Promise.resolve();
      },
    },
  };
  return { tried, options };
}

describe("workflow agent: archived", () => {
  it("tells ledger and record itself if no server does, detaches the wallet, and ends", () => {
    const { options, tried } = detaching(0);
    return play(async (stage) => {
      const { account, ledger } = await withAccount(stage);
      const held = await account.pay(6_000);
      await account.finish(held);
      const agent = await StagedAgent.start(stage);
      expect(await agent.submit(byPerson)).to.deep.equal([{ kind: "archive", changed: true }]);
      expect(await detailsOf(agent.handle)).to.include("Its wallet is still to be detached.");
      await ended(stage, agent);
      const { agentId } = agent.profile;
      expect((await account.totals()).reserved, "what was on hold is released").to.equal(0);
      expect((await ledger.state()).accounts.active).to.equal(0);
      const late = await ledger.submit(account.paying(account.request(1)));
      expect(late).to.deep.equal([{ kind: "no_account" }]);
      expect(stage.projections.agents.get(agentId)).to.deep.include({ keyId: null, walletDetached: true });
      expect(tried).to.deep.equal([agentId]);
      const events = await eventsOf(agent.handle);
      const names = new Set(activitiesOf(events));
      expect([...names].toSorted()).to.deep.equal([
        "closeDeliveryWindow",
        "detachWallet",
        "followInLedger",
        "writeAgent",
      ]);
      expect(silentTasksOf(events)).to.deep.equal([]);
    }, options);
  });

  it("ends at once, and does nothing itself, where servers have done all of it", () => {
    const { options, tried } = detaching(0);
    return play(async (stage) => {
      const { account, ledger } = await withAccount(stage);
      const agent = await StagedAgent.start(stage);
      await eventsUntil(agent.handle, (events) => activitiesOf(events).length > 0);
      while (!(await agent.state()).access.bundled.erased) await stage.skip(10);
      const { unfollowed, unrecorded } = await agent.update(byPerson);
      if (unfollowed === null || unrecorded === null) throw new Error("there is something to follow");
      expect(unrecorded.events.map(({ type }) => type)).to.deep.equal(["agent.archived"]);
      const { agentId } = account;
      await ledger.submit({ kind: "follow_agent", agentId, ...unfollowed.followed });
      await agent.submit(
        { kind: "confirm_followed", revision: unfollowed.followed.revision },
        { kind: "confirm_record", revision: unrecorded.revision },
      );
      expect((await agent.handle.describe()).status.name, "its wallet is left").to.equal("RUNNING");
      const detached = await agent.update({ kind: "confirm_detached" });
      await agent.submit({ kind: "confirm_record", revision: detached.unrecorded?.revision ?? 0 });
      await ended(stage, agent);
      expect(tried).to.deep.equal([]);
      expect(activitiesOf(await eventsOf(agent.handle))).to.deep.equal(["closeDeliveryWindow"]);
    }, options);
  });

  it("its wallet is detached again and again at a slowing pace, and it does not end before", () => {
    const FAILS = 100;
    const { options, tried } = detaching(FAILS);
    return play(async (stage) => {
      await withAccount(stage);
      const agent = await StagedAgent.start(stage);
      await agent.submit(byPerson);
      await stage.skip(HOUR_MS);
      const inFirst = tried.length;
      await stage.skip(HOUR_MS);
      const inSecond = tried.length - inFirst;
      expect([inFirst, inSecond, inFirst > inSecond], "tries of each hour").to.deep.equal([
        inFirst,
        inSecond,
        true,
      ]);
      expect((await agent.handle.describe()).status.name).to.equal("RUNNING");
      await ended(stage, agent, 5 * MINUTE_MS);
      expect(tried).to.have.length(FAILS + 1);
      expect(stage.projections.agents.get(agent.profile.agentId)).to.include({ walletDetached: true });
    }, options);
  });

  it("a ledger that can't be had is told later, and the actor does not end before", () =>
    play(async (stage) => {
      const agent = await StagedAgent.start(stage);
      await agent.submit(byPerson);
      await stage.skip(HOUR_MS);
      expect((await agent.handle.describe()).status.name).to.equal("RUNNING");
      const { ledger } = await withAccount(stage);
      await ended(stage, agent);
      expect((await ledger.state()).accounts).to.deep.equal({ active: 0, paused: 0, closed: 1 });
    }));
});

describe("workflow agent: what it decided and no server has told", () => {
  it("a new key, a revoked one and a name are told to ledger and record after 10 s", () =>
    play(async (stage) => {
      const { account } = await withAccount(stage);
      const { agent } = await begin(stage);
      await agent.submit(
        { kind: "authenticate", keyId: FIRST_KEY },
        { kind: "revoke_key" },
        { kind: "mint_key", keyId: "akey_second" },
        { kind: "rename", name: "Another" },
      );
      await stage.skip(8_000);
      expect(activitiesOf(await eventsOf(agent.handle)), "before the bound").to.deep.equal([]);
      await stage.skip(2_500);
      await eventsUntil(agent.handle, (events) => activitiesOf(events).length === 2);
      while ((await agent.state()).confirmedRevision < 4) await stage.skip(10);
      expect(await account.booked()).to.include({ keyId: "akey_second", name: "Another" });
      const record = stage.projections.agents.get(agent.profile.agentId);
      expect(record).to.include({ keyId: "akey_second", name: "Another", revision: 4 });
      expect(record?.authenticatedAt).to.be.a("number");
      await stage.skip(MINUTE_MS);
      const events = await eventsOf(agent.handle);
      expect(activitiesOf(events).toSorted(), "and not again").to.deep.equal([
        "followInLedger",
        "writeAgent",
      ]);
      expect(silentTasksOf(events)).to.deep.equal([]);
    }));

  it("a key's first use costs one update, and what servers have told of leaves no timer", () =>
    play(async (stage) => {
      const { agent } = await begin(stage);
      const before = actionsOf(await eventsOf(agent.handle));
      const uses = await agent.submit(
        { kind: "authenticate", keyId: FIRST_KEY },
        { kind: "authenticate", keyId: FIRST_KEY },
        { kind: "authenticate", keyId: "akey_other" },
      );
      const { authenticatedAt } = (await agent.state()).access;
      expect(authenticatedAt).to.be.a("number");
      expect(uses).to.deep.equal(
        [authenticatedAt, authenticatedAt, null].map((firstUsedAt) => ({
          kind: "authenticated",
          firstUsedAt,
        })),
      );
      await stage.skip(MINUTE_MS);
      const used = actionsOf(await eventsOf(agent.handle));
      expect(used).to.deep.equal({ ...before, updates: 1 });
      const { unfollowed, unrecorded } = await agent.update({ kind: "rename", name: "Another" });
      await agent.submit(
        { kind: "confirm_followed", revision: unfollowed?.followed.revision ?? 0 },
        { kind: "confirm_record", revision: unrecorded?.revision ?? 0 },
      );
      await stage.skip(MINUTE_MS);
      const { timers } = used;
      const events = await eventsOf(agent.handle);
      // The second timer is the one that the change has put off.
      expect(actionsOf(events)).to.deep.equal({ ...used, updates: 3, timers: timers + 2 });
      expect(events.filter((event) => event.timerFiredEventAttributes)).to.deep.equal([]);
    }));

  it("a pause is the ledger's: the actor's search attribute follows it, and no older one", () =>
    play(async (stage) => {
      const { account, ledger } = await withAccount(stage);
      const { agent } = await begin(stage);
      const shown = async () => (await agent.handle.describe()).searchAttributes["AgentState"];
      await ledger.submit({ kind: "pause", agentId: account.agentId });
      await stage.skip(10_500);
      await eventsUntil(ledger.handle, (events) => activitiesOf(events).includes("writeAccounts"));
      while ((await agent.state()).status === "active") await stage.skip(10);
      expect(await shown()).to.deep.equal(["paused"]);
      const { statusRevision } = await agent.state();
      await agent.submit({
        kind: "follow_status",
        status: "active",
        revision: statusRevision,
        revokedKeyId: null,
      });
      expect(await shown()).to.deep.equal(["paused"]);
      await agent.submit({
        kind: "follow_status",
        status: "active",
        revision: statusRevision + 1,
        revokedKeyId: null,
      });
      expect(await shown()).to.deep.equal(["active"]);
    }));
});

describe("workflow agent: what operators read of its life", () => {
  it("the agent's name, the window, the proof and the key's id at each stage, and no secret", () =>
    play(async (stage) => {
      const { agent, until } = await begin(stage);
      const iso = new Date(until).toISOString();
      const told: string[] = [];
      const details = async (): Promise<string> => {
        const text = await detailsOf(agent.handle);
        told.push(text, JSON.stringify(await agent.state()));
        return text;
      };
      expect(await details()).to.include(`Agent **Agent** (\`${agent.profile.agentId}\`) is **active**.`);
      expect(await details()).to.include(`can be delivered again until ${iso}; a timer erases`);
      expect(told[0]).to.include(`Its key is \`${FIRST_KEY}\`.`).and.include("No proof of non-delivery.");
      await stage.skipTo(until + 1_000);
      await eventsUntil(agent.handle, (events) => activitiesOf(events).includes("closeDeliveryWindow"));
      await agent.submit(replayOfCreate, {
        kind: "rename",
        name: "A *new* [name](https://example.com)\n# of mine",
      });
      expect(await details()).to.include(
        "Agent **A \\*new\\* \\[name\\]\\(https\\:\\/\\/example\\.com\\) \\# of mine** (",
      );
      expect(await details()).to.include("Non-delivery was proven at");
      await agent.submit(machineArchive);
      expect(await details())
        .to.include("**archived**")
        .and.include("It has no active key.");
      for (const text of told) expect(text).to.not.match(/sk_svc_|svc_org_|hash|sealed":/i);
      for (const text of told.filter((_text, at) => at % 2 === 0)) expect(text).to.not.include(LINEAGE);
    }));
});
