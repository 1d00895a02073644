import { expect } from "chai";
import { resolveTestServer } from "../../src/engines/test-server.ts";
import { engineErrorOf } from "./support/scratch.ts";

describe("The time-skipping test server", () => {
  it("that is named but ends at once is an error of one line, with its last words", async () => {
    const env = { ...process.env, TEMPORAL_TEST_SERVER: "/bin/false" };
    const error = await engineErrorOf(
      resolveTestServer(env, () => undefined),
      "BINARY_BROKEN",
    );
    expect(error.message).to.include("TEMPORAL_TEST_SERVER names /bin/false");
  });
});
