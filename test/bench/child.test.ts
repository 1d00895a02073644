import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect } from "chai";
import { Child } from "../../lab/bench/child.ts";

const run = promisify(execFile);

describe("bench: the processes that it starts", () => {
  it("are told how to start over their channel, and nothing of it is in their arguments", async () => {
    const mongodbUri = String(process.env["TEST_MONGODB_URI"]);
    const config = { mongodbUri, baseUrl: "http://127.0.0.1:1" };
    const child = await Child.start({ entry: "processes/bare-read.ts", config });
    try {
      const { stdout } = await run("ps", ["-ww", "-o", "args=", "-p", String(child.pid)]);
      expect(stdout).to.include("bare-read.js").and.not.include("mongodb://");
      const answer = await fetch(`http://127.0.0.1:${String(child.port)}/projects/none`);
      expect(answer.status, "it has the address of MongoDB").to.equal(404);
    } finally {
      await child.stop();
    }
  });
});
