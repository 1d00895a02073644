import { expect } from "chai";
import { signalHeld } from "../../src/actors/mails.ts";
import { TemporalCalls } from "../../src/actors/calls.ts";
import { type HeldPayment, MAILS_PER_HOUR_MAX } from "../../src/domain/approval-mails.ts";
import { mailActivities } from "../../src/mail/activities.ts";
import type { MailMessage } from "../../src/mail/mail.ts";
import { approvalMailsWorkflowId } from "../../src/messages/mail.ts";
import { mailCollections } from "../../src/store/mail-documents.ts";
import { approvalRecord, mailedPerson } from "../mail/held.ts";
import { testDatabase, type TestDatabase } from "../support/mongo.ts";
import { times, until } from "../support/world.ts";
import { eventsOf } from "./support/history.ts";
import { type TimedStage, useTimedStage } from "./support/timed.ts";

const play = useTimedStage();

const HOUR_MS = 3_600_000;
/** Time that is skipped runs on while something is done, for as long as a busy machine takes for it. */
const LATE_MS = 60_000;

describe("workflow of a person's mails about payments on hold", () => {
  let database: TestDatabase;
  before(async () => {
    database = await testDatabase();
  });
  after(() => database.close());

  interface Mailed extends MailMessage {
    readonly at: number;
  }

  /** A person's workflow over the real activity; `mails` has what was handed to the mail server, and when. */
  async function scene(plot: (person: Person, on: TimedStage) => Promise<void>): Promise<void> {
    const mails: Mailed[] = [];
    let stageNow: TimedStage["now"] | null = null;
    const { mailApprovals } = mailActivities({
      db: database.db,
      mail: { send: async (message) => (mails.push({ ...message, at: (await stageNow?.()) ?? 0 }), "sent") },
      baseUrl: "https://spend.example.com",
      isGenuine: () => true,
      openLink: (_inviteId, sealed) => sealed,
      auditLog: { append: () => Promise.resolve() },
      clock: () => new Date(),
      onOutcome: () => undefined,
      onWarning: () => undefined,
    });
    await play(
      async (stage) => {
        stageNow = () => stage.now();
        await plot(await newPerson(stage, mails), stage);
      },
      { activities: { mailApprovals } },
    );
  }

  interface Person {
    readonly mails: readonly Mailed[];
    /** Has the payments of one hour's room put on hold, and mailed one by one. */
    useUpTheHour(): Promise<void>;
    /** Has so many payments put on hold, told in one signal. */
    hold(count: number): Promise<readonly HeldPayment[]>;
    signal(held: readonly HeldPayment[]): Promise<void>;
    decide(held: readonly HeldPayment[]): Promise<void>;
    /** Waits for the workflow's end, however far that is. */
    ends(): Promise<void>;
    /** Whether its last run continues an earlier one. */
    isContinued(): Promise<boolean>;
  }

  async function newPerson(stage: TimedStage, mails: readonly Mailed[]): Promise<Person> {
    const { client, scene: name, taskQueue } = stage;
    const collections = mailCollections(database.db);
    const { email: _address, ...person } = await mailedPerson(database.db, {
      organizationId: `organization-${name}`,
    });
    const handle = client.workflow.getHandle(approvalMailsWorkflowId(person));
    const calls = new TemporalCalls(client, taskQueue);
    const signal = (held: readonly HeldPayment[]) => signalHeld(calls, person, held);
    let made = 0;
    const hold = async (count: number) => {
      const at = await stage.now();
      const records = times(count, (index) =>
        approvalRecord({
          organizationId: person.organizationId,
          _id: `apr_${name}_${String((made += 1))}`,
          createdAt: new Date(at + index),
          // In the time of the process, which is not the one that is skipped.
          expiresAt: new Date(Date.now() + HOUR_MS),
        }),
      );
      await collections.approvals.insertMany(records);
      const held = records.map(({ _id, createdAt }) => ({ approvalId: _id, heldAt: createdAt.getTime() }));
      await signal(held);
      return held;
    };
    return {
      mails,
      signal,
      hold,
      async useUpTheHour() {
        await hold(MAILS_PER_HOUR_MAX);
        await until("each is mailed", () => Promise.resolve(mails.length === MAILS_PER_HOUR_MAX || null));
      },
      async decide(held) {
        const ids = held.map(({ approvalId }) => approvalId);
        await collections.approvals.updateMany({ _id: { $in: ids } }, { $set: { state: "completed" } });
      },
      ends: async () => void (await handle.result()),
      async isContinued() {
        const [started] = await eventsOf(handle);
        return Boolean(started?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId);
      },
    };
  }

  it("beyond the hour's mails, one digest an hour later lists what is still undecided then", () =>
    scene(async (person, stage) => {
      const began = await stage.now();
      await person.useUpTheHour();
      const held = await person.hold(3);
      await person.decide(held.slice(1, 2));
      await person.ends();
      const { mails } = person;
      expect(mails).to.have.lengthOf(MAILS_PER_HOUR_MAX + 1);
      expect((mails.at(-2)?.at ?? 0) - began).to.be.below(LATE_MS);
      const digest = mails.at(-1);
      expect((digest?.at ?? 0) - began).to.be.within(HOUR_MS, HOUR_MS + LATE_MS);
      const listed = held.map(({ approvalId }) => digest?.text.includes(`/approvals/${approvalId}\n`));
      expect([digest?.subject, listed]).to.deep.equal(["Approval needed: 2 payments", [true, false, true]]);
    }));

  it("a digest of which everything was decided is not sent, and the workflow starts again later", () =>
    scene(async (person) => {
      await person.useUpTheHour();
      await person.decide(await person.hold(MAILS_PER_HOUR_MAX));
      await person.ends();
      expect(person.mails).to.have.lengthOf(MAILS_PER_HOUR_MAX);
      await person.hold(1);
      await person.ends();
      expect(person.mails).to.have.lengthOf(MAILS_PER_HOUR_MAX + 1);
    }));

  it("a flood of signals rolls the workflow over, and the hour's mails still count", () =>
    scene(async (person) => {
      await person.useUpTheHour();
      const held = await person.hold(2);
      for (let round = 0; round < 25; round += 1) await Promise.all(times(20, () => person.signal(held)));
      await person.ends();
      expect(await person.isContinued()).to.equal(true);
      expect(person.mails.map(({ subject }) => subject).slice(MAILS_PER_HOUR_MAX)).to.deep.equal([
        "Approval needed: 2 payments",
      ]);
    }));
});
