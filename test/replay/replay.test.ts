import { readFile } from "node:fs/promises";
import { homedir, hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "@temporalio/worker";
import { DeterminismViolationError } from "@temporalio/workflow";
import { expect } from "chai";
import { WORKFLOW_BUNDLE } from "../../server/workflow-bundle.ts";
import { PACKAGE_ROOT } from "../../src/lib/package-root.ts";
import { removeActivity, removeTimer, renameActivity } from "./alter.ts";
import { fromRecord, type RecordedHistory, recording, recordings } from "./histories.ts";

/** For each history, in their order, the error that its replay ends with; null where it goes through. */
async function replay(histories: readonly RecordedHistory[]): Promise<readonly (Error | null)[]> {
  const replayed = histories.map((history, index) => ({
    workflowId: String(index),
    history: fromRecord(history),
  }));
  const errors = new Map<string, Error | null>();
  const results = Worker.runReplayHistories({ workflowBundle: WORKFLOW_BUNDLE }, replayed);
  for await (const { error, workflowId } of results) errors.set(workflowId, error ?? null);
  return replayed.map(({ workflowId }) => {
    const error = errors.get(workflowId);
    if (error === undefined) throw new Error("a history was not replayed");
    return error;
  });
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
    { name: "agent-rolled-over", what: "an activity is renamed", alter: renameActivity },
    { name: "agent-rolled-over", what: "a timer is missing", alter: removeTimer },
    { name: "agent-resumed", what: "a timer is missing", alter: removeTimer },
    { name: "agent-mirroring-rolled-over", what: "an activity is renamed", alter: renameActivity },
    { name: "agent-mirroring-resumed", what: "a timer is missing", alter: removeTimer },
    { name: "agent-life-archived", what: "the window's timer is missing", alter: removeTimer },
    { name: "agent-life-archived", what: "the first activity is renamed", alter: renameActivity },
    { name: "agent-life-unused", what: "the end of the window is missing", alter: removeActivity },
    { name: "agent-life-discarded", what: "the end of the window is renamed", alter: renameActivity },
    { name: "approval-expired", what: "the window's timer is missing", alter: removeTimer },
    { name: "approval-approved", what: "the call of the rail is renamed", alter: renameActivity },
    { name: "approval-approved", what: "the call of the rail is missing", alter: removeActivity },
    { name: "settlement-approved", what: "the polling timer is missing", alter: removeTimer },
    { name: "agent-asking", what: "a timer is missing", alter: removeTimer },
    { name: "agent-asking", what: "the sweep is renamed", alter: renameActivity },
    { name: "budget-resumed", what: "a timer is missing", alter: removeTimer },
    { name: "budget-rolled-over", what: "the look-up of agents is renamed", alter: renameActivity },
    { name: "budget-resumed", what: "the telling of agents is missing", alter: removeActivity },
    { name: "delivery-succeeded", what: "the sending is renamed", alter: renameActivity },
    { name: "delivery-dropped", what: "the sending is missing", alter: removeActivity },
    { name: "secret-expiry-erased", what: "the timer is missing", alter: removeTimer },
    { name: "secret-expiry-erased", what: "the erasure is renamed", alter: renameActivity },
    { name: "replay-queued", what: "the first step is missing", alter: removeActivity },
    { name: "watch-events", what: "the look is renamed", alter: renameActivity },
    { name: "watch-deposits", what: "the first look is missing", alter: removeActivity },
    { name: "invite-mail-mailed", what: "the mailing is renamed", alter: renameActivity },
    { name: "invite-mail-mailed", what: "the mailing is missing", alter: removeActivity },
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
    for (const { name, text } of await recordings()) {
      const payloads = payloadsOf(text);
      expect(payloads, name).not.to.deep.equal([]);
      const plain = `${text}\n${payloads.join("\n")}`;
      for (const word of forbidden) expect(plain.includes(word), `${name}: ${word}`).to.equal(false);
    }
  });
});

/** The payloads of a history, decoded. */
const payloadsOf = (text: string): readonly string[] =>
  [...text.matchAll(/"data":\s*"([^"]*)"/g)].map((match) => Buffer.from(match[1] ?? "", "base64").toString());

/** The workflow types that the bundle's entry exports. */
async function workflowTypes(): Promise<readonly string[]> {
  const entry = await readFile(join(PACKAGE_ROOT, "workflows", "index.ts"), "utf8");
  return [...entry.matchAll(/^export \{ ([\w, ]+) \}/gm)]
    .flatMap(([, names = ""]) => names.split(", "))
    .toSorted();
}
