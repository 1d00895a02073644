import { expect } from "chai";
import { createdEventId } from "../../../src/domain/events.ts";
import { TestAccount } from "../support/account.ts";
import { profile } from "../support/actor.ts";
import { TestAgent } from "../support/agent.ts";

describe("the events of an agent's life", () => {
  it("one for each change of its account, in order, and none for what was so already", () => {
    const account = new TestAccount();
    const published = (): readonly string[] => account.state.outbox.map(({ type }) => type);
    account.do({ kind: "resume" });
    expect(published()).to.deep.equal([]);
    for (const kind of ["pause", "pause", "resume", "resume", "pause"] as const) account.do({ kind });
    expect(published()).to.deep.equal(["agent.paused", "agent.resumed", "agent.paused"]);
    account.archive();
    for (const kind of ["pause", "resume"] as const) account.do({ kind });
    expect(published(), "its agent publishes the archive").to.have.length(3);
  });

  it("one for its archive, published by its actor, under an id that no other event has", () => {
    const account = new TestAccount();
    for (const kind of ["pause", "resume"] as const) account.do({ kind });
    const agent = new TestAgent();
    agent.do({ kind: "archive", by: { type: "organization_key", lineageId: "any", balance: "zero" } });
    expect(agent.state.outbox, "refused").to.deep.equal([]);
    for (let times = 0; times < 2; times += 1) agent.do({ kind: "archive", by: { type: "user" } });
    expect(agent.state.outbox.map(({ type }) => type)).to.deep.equal(["agent.archived"]);
    const ids = [...account.state.outbox, ...agent.state.outbox].map(({ id }) => id);
    expect(new Set([...ids, createdEventId(profile.agentId)]).size).to.equal(4);
  });

  it("an account's event is kept until its own revision's record is confirmed", () => {
    const account = new TestAccount();
    const confirm = (revision: number): void =>
      void account.judge({ kind: "confirm_records", records: [{ agentId: profile.agentId, revision }] });
    account.do({ kind: "pause" });
    const paused = account.state.revision;
    account.do({ kind: "resume" });
    confirm(paused - 1);
    expect(account.state.outbox).to.have.length(2);
    confirm(paused);
    expect(account.state.outbox.map(({ type }) => type)).to.deep.equal(["agent.resumed"]);
    confirm(account.state.revision);
    expect(account.state.outbox).to.deep.equal([]);
  });

  it("an archive's event is kept until its own revision's record is confirmed", () => {
    const agent = new TestAgent();
    agent.do({ kind: "archive", by: { type: "user" } });
    const { revision } = agent.state;
    agent.do({ kind: "confirm_record", revision: revision - 1 });
    expect(agent.state.outbox).to.have.length(1);
    agent.do({ kind: "confirm_record", revision });
    expect(agent.state.outbox).to.deep.equal([]);
  });
});
