import { expect } from "chai";
import { ActorUnavailable, StaleRecords } from "../../src/actors/actor-unavailable.ts";
import { CommandsRefused } from "../../src/actors/commands-refused.ts";
import { times } from "../support/world.ts";
import { confirm, HeldTimers, kindsIn, Revisions, stage } from "./stage.ts";
import { place, sizeOf, turn, UPDATE_BYTES_MAX } from "./support.ts";

describe("a ledger's mailbox", () => {
  it("has one update in flight, with no more than 128 commands that somebody waits for", async () => {
    const { batches, flight, ledgers, pay } = stage();
    const replies = await Promise.all(times(300, () => ledgers.submit(place, pay("one"))));
    expect(new Set(kindsIn(replies))).to.deep.equal(new Set(["decided"]));
    expect(flight.most).to.equal(1);
    const sizes = batches.map((batch) => kindsIn(batch).filter((kind) => kind === "pay").length);
    expect(sizes).to.deep.equal([1, 128, 128, 43]);
  });

  it("a batch waits for callers of other servers that were answered a moment ago", async () => {
    const clock = { now: 1_000 };
    const due: (() => void)[] = [];
    const { batches, ledgers, pay } = stage({
      timers: {
        after(_ms, run) {
          due.push(run);
          return () => undefined;
        },
        monotonicMs: () => clock.now,
      },
      // An update takes 10 ms.
      fails() {
        clock.now += 10;
        return null;
      },
    });
    const forwarded = () => ledgers.accept({ project: place, commands: [pay("one")] });
    await forwarded();
    const paid = [ledgers.submit(place, pay("two")), forwarded()];
    expect(batches).to.have.length(1);
    clock.now += 2;
    due.forEach((run) => run());
    await Promise.all(paid);
    expect(batches.slice(1).map(kindsIn)).to.deep.equal([["pay", "pay"]]);
  });

  it("confirmations ride along with what is asked, and go by themselves where nothing is", async () => {
    const { batches, ledger, ledgers, pay } = stage();
    const paid = times(200, () => pay("one"));
    await Promise.all(paid.map((command) => ledgers.submit(place, command)));
    for (const command of paid) ledgers.confirmLater(place, confirm(command), Promise.resolve());
    await turn();
    const before = batches.length;
    await ledgers.submit(place, pay("two"));
    expect(kindsIn(batches[before] ?? []))
      .to.include("confirm")
      .and.include("pay");
    expect(batches[before]?.length).to.be.at.most(256);
    await ledgers.flushAll();
    const open = ledger.accounts.get("one")?.open ?? new Map();
    expect([...open.values()].every(({ confirmedRevision }) => confirmedRevision === 1)).to.equal(true);
  });

  it("tells the ledger how far it had come; by its records, where it has not answered lately", async () => {
    const revisions = new Revisions();
    revisions.revision = 7;
    const { knowns, ledger, ledgers, pay } = stage({ revisions });
    ledger.revision = 7;
    for (const _each of times(3, () => null)) await ledgers.submit(place, pay("one"));
    expect(knowns).to.deep.equal([
      { ledger: 0, recorded: 7, isRead: true },
      { ledger: 8, recorded: 8, isRead: false },
      { ledger: 9, recorded: 9, isRead: false },
    ]);
    expect(revisions).to.include({ revision: 10, reads: 1 });
  });

  it("nobody is told what a ledger has decided before its records show how far it had come", async () => {
    const revisions = new Revisions();
    const write = revisions.hold();
    const { ledgers, pay } = stage({ revisions });
    let isTold = false;
    const submitted = ledgers.submit(place, pay("one")).then(() => (isTold = true));
    const { revisionRecorded } = await ledgers.submitUnrecorded(place, pay("one"));
    for (const _each of times(3, () => null)) await turn();
    expect(isTold).to.equal(false);
    write();
    await Promise.all([revisionRecorded, submitted]);
    expect(revisions.revision).to.equal(2);
  });

  it("records that seem to be stale are read again: another server may have written them", async () => {
    const revisions = new Revisions();
    const stale = new StaleRecords("stale");
    let failures = 1;
    const { ledgers, pay } = stage({ revisions, fails: () => ((failures -= 1) >= 0 ? stale : null) });
    expect((await ledgers.submit(place, pay("one"))).kind).to.equal("decided");
    expect(revisions.reads).to.equal(2);
    failures = 3;
    const again = stage({ revisions, fails: () => ((failures -= 1) >= 0 ? stale : null) });
    const refused = await again.ledgers.submit(place, again.pay("one")).catch((error: unknown) => error);
    expect(refused).to.equal(stale);
  });

  it("lost confirmations are told of once, and hold up nothing: the ledger sweeps", async () => {
    const lost = new Error("lost");
    const { errors, ledgers, pay } = stage({
      fails: (commands) => (commands.every(({ kind }) => kind.startsWith("confirm")) ? lost : null),
    });
    const paid = pay("one");
    await ledgers.submit(place, paid);
    ledgers.confirmLater(place, confirm(paid), Promise.resolve());
    await ledgers.flushAll();
    expect(errors).to.deep.equal(["confirmations were lost; the ledger sweeps"]);
    expect((await ledgers.submit(place, pay("one"))).kind).to.equal("decided");
  });

  it("what could not be told of is not confirmed", async () => {
    const { batches, errors, ledgers, pay } = stage();
    const paid = pay("one");
    await ledgers.submit(place, paid);
    ledgers.confirmLater(place, confirm(paid), Promise.reject(new Error("no journal")));
    await ledgers.flushAll();
    expect(batches.flatMap(kindsIn)).to.not.include("confirm");
    expect(errors).to.have.length(1);
  });

  it("a batch never comes near the size at which the engine would end the ledger", async () => {
    const { batches, ledgers, pay } = stage();
    const purpose = "p".repeat(20_000);
    const paying = times(300, () => ledgers.submit(place, pay("one", { purpose })).catch(() => null));
    await Promise.all(paying);
    expect(batches.length).to.be.greaterThan(3);
    for (const batch of batches) expect(sizeOf(batch)).to.be.below(UPDATE_BYTES_MAX);
  });

  it("what is answered at length takes room by its answer: long replacements go one by one", async () => {
    const { batches, ledgers } = stage();
    const agents = times(1_000, (number) => ({ agentId: `agent-${String(number)}`, budgetCents: 1 }));
    const replacement = { kind: "replace_team", teamId: "team", version: 1, capCents: null, agents } as const;
    const replacing = times(4, (number) =>
      ledgers.submit(place, { ...replacement, requestId: `request-${String(number)}` }).catch(() => null),
    );
    await Promise.all(replacing);
    const together = batches.map((batch) => kindsIn(batch).filter((kind) => kind === "replace_team").length);
    expect(together).to.deep.equal([1, 1, 1, 1]);
  });

  it("what is refused of a batch fails for its sender alone; the rest is said again, in order", async () => {
    const { batches, ledgers, pay } = stage();
    const first = ledgers.submit(place, pay("one"));
    const asked = [pay("one"), pay("one", { unless: "it rains" }), pay("one")];
    const ends = await Promise.all([
      first,
      ...asked.map((command) => ledgers.submit(place, command).catch((error: unknown) => error)),
    ]);
    expect(ends[2]).to.be.instanceOf(CommandsRefused);
    expect(kindsIn([ends[0], ends[1], ends[3]].map((end) => Object(end)))).to.deep.equal(
      times(3, () => "decided"),
    );
    const said = (batches[2] ?? []).flatMap((command) => (command.kind === "pay" ? [command] : []));
    expect(said).to.deep.equal([asked[0], asked[2]]);
  });

  it("lingers for those who are about to ask, and not where nobody is", async () => {
    const timers = new HeldTimers();
    const { batches, ledgers, pay } = stage({ timers });
    await ledgers.submit(place, pay("one"));
    const alone = ledgers.submit(place, pay("one"));
    expect(batches.splice(0), "sent at once").to.have.length(2);
    await alone;
    batches.push([]);
    const hasAsked = ledgers.announceCommand(place);
    const early = ledgers.submit(place, pay("one"));
    expect(batches, "waits for the other").to.have.length(1);
    const late = ledgers.submit(place, pay("two"));
    hasAsked();
    expect(batches, "sent as soon as nobody is expected").to.have.length(2);
    await Promise.all([early, late]);
    expect(batches[1]).to.have.length(2);
    const never = ledgers.announceCommand(place);
    const last = ledgers.submit(place, pay("one"));
    expect(batches, "waits again").to.have.length(2);
    timers.pass(2);
    expect(batches, "and goes after 2 ms in any case").to.have.length(3);
    await last;
    never();
  });

  it("a stop waits for nobody who is about to ask", async () => {
    const { batches, ledgers, pay } = stage({ timers: new HeldTimers() });
    await ledgers.submit(place, pay("one"));
    const hasAsked = ledgers.announceCommand(place);
    const paying = ledgers.submit(place, pay("one"));
    expect(batches).to.have.length(1);
    const stopping = ledgers.submit(place, { kind: "pause", agentId: "one" });
    expect(kindsIn(batches[1] ?? [])).to.deep.equal(["pause", "pay"]);
    await Promise.all([paying, stopping]);
    hasAsked();
  });

  it("a stop is taken where nothing else is any more, and goes before the agent's payments", async () => {
    const { batches, ledgers, pay } = stage();
    const paying = times(1_001, () => ledgers.submit(place, pay("one")));
    const full: unknown = await ledgers.submit(place, pay("one")).catch((error: unknown) => error);
    expect(full).to.be.instanceOf(ActorUnavailable);
    const other = ledgers.submit(place, pay("two"));
    await ledgers.submit(place, { kind: "pause", agentId: "one" });
    await Promise.all([...paying, other]);
    // The first payment was on its way already.
    expect(kindsIn(batches[1] ?? []).slice(0, 2)).to.deep.equal(["pause", "pay"]);
  });

  it("a payment is confirmed together with the record that shows its charge", async () => {
    const timers = new HeldTimers();
    const { batches, ledger, ledgers, pay, records } = stage({ timers, confirmAfterMs: 3_000 });
    const command = pay("one");
    await ledgers.submit(place, command);
    const outcome = { result: { status: "settled" }, at: 1_000_000 } as const;
    ledgers.confirmLater(place, { ...confirm(command), revision: 3, outcome }, Promise.resolve());
    for (let halfSeconds = 0; halfSeconds < 20; halfSeconds += 1) {
      await turn();
      timers.pass(500);
    }
    expect(batches.map(kindsIn)).to.deep.equal([["pay"], ["confirm", "confirm_records"]]);
    const account = ledger.accounts.get("one");
    expect(records).to.have.length(1);
    expect(records[0]).to.include({ spentCents: 1, reservedCents: 0, revision: account?.revision });
    expect(account?.confirmedRevision).to.equal(account?.revision);
  });

  it("a charge that another change has overtaken is recorded as the ledger shows it", async () => {
    const { ledger, ledgers, pay, records } = stage();
    const command = pay("one");
    await ledgers.submit(place, command);
    await ledgers.submit(place, { kind: "pause", agentId: "one" });
    const outcome = { result: { status: "settled" }, at: 1_000_000 } as const;
    ledgers.confirmLater(place, { ...confirm(command), revision: 3, outcome }, Promise.resolve());
    await ledgers.flush(place, "one");
    await ledgers.submit(place, pay("two"));
    await ledgers.flushAll();
    const account = ledger.accounts.get("one");
    expect(account?.confirmedRevision).to.equal(account?.revision);
    const last = records.findLast(({ agentId }) => agentId === "one");
    expect(last).to.include({
      spentCents: 1,
      reservedCents: 0,
      status: "paused",
      revision: account?.revision,
    });
  });

  it("an agent's record is written with its newest state, and then confirmed", async () => {
    const { batches, ledger, ledgers, pay, records } = stage();
    await Promise.all(times(3, () => ledgers.submit(place, pay("one"))));
    expect(ledgers.isBehind(place, "one")).to.equal(true);
    await ledgers.flush(place, "one");
    expect(records.at(-1)).to.include({ agentId: "one", reservedCents: 3 });
    await ledgers.flushAll();
    await ledgers.submit(place, pay("two"));
    await ledgers.flushAll();
    expect(batches.flatMap(kindsIn)).to.include("confirm_records");
    const account = ledger.accounts.get("one");
    expect(account?.confirmedRevision).to.equal(account?.revision);
  });
});
