import { readFile } from "node:fs/promises";
import { homedir, hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { Worker } from "@temporalio/worker";
import { DeterminismViolationError } from "@temporalio/workflow";
import { expect } from "chai";
import { WORKFLOW_BUNDLE } from "../../server/workflow-bundle.ts";
import { PACKAGE_ROOT } from "../../src/lib/package-root.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";
import { payloadKeysOf } from "../../src/temporal/payload-keys.ts";
import type { TemporalPayloadsOptions } from "../../src/temporal/temporal-payloads.ts";
import { TEST_MASTER_KEY, testPayloads } from "../support/payloads.ts";
import {
  changeReply,
  removeActivity,
  removeTimer,
  renameActivity,
  resealed,
  swapCommands,
  swapEvents,
} from "./alter.ts";
import {
  fromBase64,
  fromRecord,
  payload,
  type RecordedHistory,
  recording,
  recordings,
  workflowIdOf,
} from "./histories.ts";
import { recordedOutcomes, replayedOutcomes } from "./outcomes.ts";

/** Histories of what is told by updates. */
const ACTORS = [
  "agent-archived",
  "agent-rolled-over",
  "agent-unused",
  "ledger-resumed",
  "ledger-rolled-over",
] as const;

/** Recorded while a master key was rotated: these events were sent by a process that had the new key already. */
const ROTATED = [
  { name: "ledger-rolled-over", type: "WORKFLOW_EXECUTION_STARTED" },
  { name: "ledger-rolled-over", type: "WORKFLOW_EXECUTION_UPDATE_ACCEPTED" },
  { name: "ledger-rolled-over", type: "ACTIVITY_TASK_COMPLETED" },
  { name: "agent-unused", type: "WORKFLOW_EXECUTION_UPDATE_ACCEPTED" },
  { name: "agent-unused", type: "ACTIVITY_TASK_COMPLETED" },
  { name: "approval-approved", type: "WORKFLOW_EXECUTION_SIGNALED" },
  { name: "approval-expired", type: "ACTIVITY_TASK_COMPLETED" },
  { name: "approval-mails-waiting", type: "WORKFLOW_EXECUTION_SIGNALED" },
  { name: "approval-mails-waiting", type: "ACTIVITY_TASK_COMPLETED" },
] as const;
const ROTATED_KEYS = payloadKeysOf(
  MasterKey.parseAll(`the-newest-master-key-of-this-test-0123456789 ${TEST_MASTER_KEY}`, "a test"),
);

/** For each history, in their order, the error that its replay ends with; null where it goes through. */
async function replay(
  histories: readonly RecordedHistory[],
  payloads: Partial<TemporalPayloadsOptions> = {},
): Promise<readonly (Error | null)[]> {
  const replayed = histories.map((history) => ({
    workflowId: workflowIdOf(history),
    history: fromRecord(history),
  }));
  const { dataConverter } = testPayloads(payloads).worker;
  const errors: (Error | null)[] = [];
  const results = Worker.runReplayHistories({ workflowBundle: WORKFLOW_BUNDLE, dataConverter }, replayed);
  for await (const { error } of results) errors.push(error ?? null);
  return errors;
}

describe("replay: workflows that run somewhere still run with today's code", () => {
  it("every workflow type has a committed history, and each of them replays", async () => {
    const committed = await recordings();
    const types = new Set(committed.map(({ workflowType }) => workflowType));
    expect([...types].toSorted()).to.deep.equal(await workflowTypes());
    const errors = await replay(committed.map(({ history }) => history));
    for (const [index, { name }] of committed.entries()) {
      const error = errors[index];
      expect(error, `${name}: ${error?.message}`).to.equal(null);
    }
  });

  const alterations = [
    { name: "ledger-rolled-over", what: "an activity is renamed", alter: renameActivity },
    { name: "ledger-rolled-over", what: "a timer is missing", alter: removeTimer },
    { name: "ledger-rolled-over", what: "two commands are the other way round", alter: swapEvents },
    { name: "ledger-resumed", what: "a sweep is renamed", alter: renameActivity },
    { name: "ledger-resumed", what: "a timer is missing", alter: removeTimer },
    { name: "agent-rolled-over", what: "the end of the window is renamed", alter: renameActivity },
    { name: "agent-archived", what: "the first activity is renamed", alter: renameActivity },
    { name: "agent-unused", what: "the end of the window is missing", alter: removeActivity },
    { name: "agent-discarded", what: "the end of the window is renamed", alter: renameActivity },
    { name: "approval-expired", what: "the window's timer is missing", alter: removeTimer },
    { name: "approval-expired", what: "the expiry is renamed", alter: renameActivity },
    { name: "approval-expired", what: "the expiry is missing", alter: removeActivity },
    { name: "settlement-approved", what: "the polling timer is missing", alter: removeTimer },
    { name: "delivery-succeeded", what: "the sending is renamed", alter: renameActivity },
    { name: "delivery-dropped", what: "the sending is missing", alter: removeActivity },
    { name: "secret-expiry-erased", what: "the timer is missing", alter: removeTimer },
    { name: "secret-expiry-erased", what: "the erasure is renamed", alter: renameActivity },
    { name: "replay-queued", what: "the first step is missing", alter: removeActivity },
    { name: "watch-events", what: "the look is renamed", alter: renameActivity },
    { name: "watch-networks", what: "the reading is renamed", alter: renameActivity },
    { name: "rail-network-played", what: "an effect is missing", alter: removeActivity },
    { name: "watch-deposits", what: "the first look is missing", alter: removeActivity },
    { name: "invite-mail-mailed", what: "the mailing is renamed", alter: renameActivity },
    { name: "invite-mail-mailed", what: "the mailing is missing", alter: removeActivity },
    { name: "approval-mails-waiting", what: "the mailing is renamed", alter: renameActivity },
    { name: "approval-mails-waiting", what: "the mailing is missing", alter: removeActivity },
    { name: "organization-ready", what: "the provisioning is renamed", alter: renameActivity },
  ] as const;
  let errors: readonly (Error | null)[];
  before(async () => {
    errors = await replay(
      await Promise.all(alterations.map(async ({ alter, name }) => alter((await recording(name)).history))),
    );
  });
  for (const [index, { name, what }] of alterations.entries()) {
    it(`${name}: refused as not deterministic when ${what}`, () => {
      expect(errors[index]).to.be.instanceOf(DeterminismViolationError);
    });
  }

  it("a worker without the key of a payload fails the task, and one with it goes through", async () => {
    const histories = await Promise.all(
      ROTATED.map(async ({ name, type }) => resealed((await recording(name)).history, type, ROTATED_KEYS)),
    );
    const [lacking, having] = [await replay(histories), await replay(histories, { keys: ROTATED_KEYS })];
    for (const [index, { name, type }] of ROTATED.entries()) {
      expect(lacking[index]?.message, `${name}: ${type}`).to.match(/workflow task failure/);
      expect(having[index], `${name}: ${type}`).to.equal(null);
    }
  });

  for (const name of ACTORS) {
    it(`${name}: today's code answers every update as it was answered`, async () => {
      const { history } = await recording(name);
      const { error, outcomes } = await replayedOutcomes(history);
      expect(error).to.equal(null);
      const recorded = await recordedOutcomes(history);
      expect(recorded.length).to.be.above(0);
      expect(outcomes).to.deep.equal(recorded);
    });
  }

  for (const [what, alter] of [
    ["an update's commands come in another order", swapCommands],
    ["a reply says something else", changeReply],
  ] as const) {
    it(`ledger-rolled-over: the answers differ when ${what}`, async () => {
      const history = alter((await recording("ledger-rolled-over")).history);
      const { error, outcomes } = await replayedOutcomes(history);
      const isTold = error === null && isDeepStrictEqual(outcomes, await recordedOutcomes(history));
      expect(isTold, "it would have gone unnoticed").to.equal(false);
    });
  }

  it("a ledger's history has payloads that were compressed, and no worker reads it without", async () => {
    const { history } = await recording("ledger-rolled-over");
    const options = { workflowBundle: WORKFLOW_BUNDLE };
    const failure: unknown = await Worker.runReplayHistory(options, fromRecord(history)).catch(
      (error: unknown) => error,
    );
    expect(failure).to.be.instanceOf(Error);
  });

  it("committed histories hold no key, no person's address and nothing of their machine", async () => {
    const forbidden = [
      hostname(),
      homedir(),
      tmpdir(),
      PACKAGE_ROOT,
      "sk_svc_",
      "svc_org_",
      "whsec_",
      "@example",
      String.raw`\n    at `,
    ];
    for (const { history, name, text } of await recordings()) {
      const payloads = payloadsOf(history);
      expect(payloads, name).not.to.deep.equal([]);
      const plain = `${text.replaceAll(/"(data|mac)":"[^"]*"/g, "")}\n${payloads.join("\n")}`;
      for (const word of forbidden) expect(plain.includes(word), `${name}: ${word}`).to.equal(false);
    }
  });
});

/** The payloads of a history, decoded. */
function payloadsOf(history: RecordedHistory): readonly string[] {
  const { codec } = testPayloads();
  const texts: string[] = [];
  JSON.stringify(history, (_key, value: unknown) => {
    const found = payload.safeParse(value);
    if (!found.success) return value;
    const opened = codec.open(fromBase64(found.data), null);
    // Search attributes are never sealed.
    const { data } = opened.ok ? opened.payload : fromBase64(found.data);
    texts.push(Buffer.from(data ?? []).toString());
    return value;
  });
  return texts;
}

/** The workflow types that the bundle's entry exports. */
async function workflowTypes(): Promise<readonly string[]> {
  const entry = await readFile(join(PACKAGE_ROOT, "workflows", "index.ts"), "utf8");
  return [...entry.matchAll(/^export \{ ([\w, ]+) \}/gm)]
    .flatMap(([, names = ""]) => names.split(", "))
    .toSorted();
}
