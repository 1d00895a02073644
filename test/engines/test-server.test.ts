import { TestWorkflowEnvironment } from "@temporalio/testing";
import { Worker } from "@temporalio/worker";
import { expect } from "chai";
import { resolveTestServer } from "../../src/engines/test-server.ts";
import { builtFile } from "../../src/lib/package-root.ts";
import { engineErrorOf, timed } from "./support/scratch.ts";

const FETCH_TIMEOUT_MS = 600_000;
const workflowsPath = builtFile("test/engines/support/echo-workflow.ts");

describe("The time-skipping test server", () => {
  it("runs a workflow that waits a day in seconds", async function () {
    this.timeout(FETCH_TIMEOUT_MS); // on a fresh machine it is fetched here
    const server = await resolveTestServer(process.env, (line) => process.stderr.write(`    ${line}\n`));
    const environment = await TestWorkflowEnvironment.createTimeSkipping({
      server: { executable: { type: "existing-path", path: server } },
    });
    try {
      const taskQueue = "echo";
      const connection = environment.nativeConnection;
      const worker = await Worker.create({ connection, taskQueue, workflowsPath });
      const { value, ms } = await timed(() =>
        worker.runUntil(
          environment.client.workflow.execute("echoAfterADay", {
            taskQueue,
            workflowId: "echo",
            args: ["hello"],
          }),
        ),
      );
      expect(value).to.equal("hello");
      // Not the day that it waits.
      expect(ms).to.be.below(120_000);
    } finally {
      await environment.teardown();
    }
  });

  it("that is named but ends at once is an error of one line, with its last words", async () => {
    const env = { ...process.env, TEMPORAL_TEST_SERVER: "/bin/false" };
    const error = await engineErrorOf(
      resolveTestServer(env, () => undefined),
      "BINARY_BROKEN",
    );
    expect(error.message).to.include("TEMPORAL_TEST_SERVER names /bin/false");
  });
});
