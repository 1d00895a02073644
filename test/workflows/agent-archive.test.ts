import { expect } from "chai";
import type { AgentCommand } from "../../src/domain/agent/commands.ts";
import type { WrittenSummary } from "../../src/domain/agent/state.ts";
import { StagedAgent } from "./support/agent.ts";
import { activitiesOf, eventsOf, eventsUntil } from "./support/history.ts";
import { begin, detailsOf, FIRST_KEY, LINEAGE, machineArchive, replayOfCreate } from "./support/life.ts";
import { useTimedStage } from "./support/timed.ts";

const play = useTimedStage();

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const byPerson: AgentCommand = { kind: "archive", by: { type: "user" } };

describe("workflow agent: archived", () => {
  it("its wallet is detached again and again until that succeeds, and never after", () => {
    const FAILS = 9;
    const tried: string[] = [];
    return play(
      async (stage) => {
        const { agent } = await begin(stage);
        expect(await agent.submit(byPerson)).to.deep.equal([{ kind: "archive", changed: true }]);
        expect(await detailsOf(agent.handle)).to.include("Its wallet is still to be detached.");
        await stage.skip(MINUTE_MS);
        expect(tried.length).to.be.within(2, FAILS);
        await stage.skip(10 * MINUTE_MS);
        await eventsUntil(agent.handle, (events) => activitiesOf(events).length > 0);
        expect((await agent.state()).walletDetached).to.equal(true);
        expect(tried).to.deep.equal(Array<string>(FAILS + 1).fill(agent.profile.agentId));
        await agent.submit(byPerson, { kind: "confirm_detached" });
        await stage.skip(24 * HOUR_MS);
        expect(tried).to.have.length(FAILS + 1);
      },
      {
        activities: {
          detachWallet({ profile }) {
            tried.push(profile.agentId);
            return tried.length <= FAILS ? Promise.reject(new Error("no chain")) : Promise.resolve();
          },
        },
      },
    );
  });

  it("a wallet that a server has detached in time is not tried by the actor at all", () => {
    const tried: string[] = [];
    return play(
      async (stage) => {
        const { agent } = await begin(stage);
        await agent.submit(byPerson, { kind: "confirm_detached" });
        await stage.skip(HOUR_MS);
        expect(tried).to.deep.equal([]);
        expect(await detailsOf(agent.handle)).to.include("Its wallet is detached.");
      },
      {
        activities: {
          detachWallet({ profile }) {
            tried.push(profile.agentId);
            return Promise.resolve();
          },
        },
      },
    );
  });

  it("the actor writes its record if no server did, and tells the archive until that was done", () => {
    const written: WrittenSummary[] = [];
    return play(
      async (stage) => {
        const { agent } = await begin(stage);
        await agent.submit(byPerson);
        await stage.skip(MINUTE_MS);
        await eventsUntil(agent.handle, (events) => activitiesOf(events).includes("writeAgentSummary"));
        expect(written[0]).to.include({ lifecycle: "archived", keyId: null });
        expect(written[0]?.events?.map(({ type }) => type)).to.deep.equal(["agent.archived"]);
        const told = written.flatMap(({ events = [] }) => events.map(({ id }) => id));
        expect(new Set(told).size).to.equal(1);
        expect((await agent.state()).outbox).to.deep.equal([]);
      },
      {
        activities: {
          writeAgentSummary({ summary }) {
            written.push(summary);
            return Promise.resolve();
          },
        },
      },
    );
  });
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

describe("workflow agent: from before actors knew of keys", () => {
  it("believes the record about its key, has no window, and is archived by a person alone", () =>
    play(async (stage) => {
      const agent = await StagedAgent.start(stage);
      const recordedKeyId = "akey_recorded";
      expect((await agent.state()).access).to.equal(undefined);
      expect(await detailsOf(agent.handle)).to.not.include("key");
      const replies = await agent.submit(
        { kind: "mint_key", keyId: "akey_2", recordedKeyId },
        { kind: "authenticate", keyId: recordedKeyId },
        replayOfCreate,
        machineArchive,
        { kind: "revoke_key", recordedKeyId },
        { kind: "authenticate", keyId: recordedKeyId },
        { kind: "mint_key", keyId: "akey_2", recordedKeyId: null },
      );
      expect(replies).to.deep.equal([
        { kind: "key_exists" },
        { kind: "authenticated", accepted: true },
        { kind: "non_delivery", windowOver: true, proven: false },
        { kind: "archive_refused", code: "MACHINE_ARCHIVE_DENIED" },
        { kind: "key", keyId: recordedKeyId },
        { kind: "authenticated", accepted: false },
        { kind: "key", keyId: "akey_2" },
      ]);
      await stage.skip(24 * HOUR_MS);
      expect(activitiesOf(await eventsOf(agent.handle))).to.not.include("closeDeliveryWindow");
      expect(await agent.submit(byPerson)).to.deep.equal([{ kind: "archive", changed: true }]);
    }));
});
