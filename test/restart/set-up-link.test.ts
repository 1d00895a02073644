import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { expect } from "chai";
import { Api } from "../support/api.ts";
import { Child, cleanEnvironment } from "../support/process.ts";
import { PASSWORD } from "../support/service.ts";

const START_MS = 45_000;

function required(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set: run the tests with \`npm test\``);
  return value;
}

const tokensIn = ({ stdout }: Child): string[] =>
  [...stdout.matchAll(/^Set up: http:\/\/127\.0\.0\.1:\d+\/setup#token=([\w-]{43})$/gm)].map(
    ([, token = ""]) => token,
  );

describe("The set-up link of a server's start", function () {
  this.timeout(90_000);
  const id = `test_${randomBytes(8).toString("hex")}`;
  const children: Child[] = [];
  after(async () => {
    await Promise.all(children.map((child) => child.end("SIGKILL")));
  });

  function environment(): NodeJS.ProcessEnv {
    const uri = new URL(required("TEST_MONGODB_URI"));
    uri.pathname = `/${id}`;
    return {
      ...cleanEnvironment(),
      MONGODB_URI: uri.toString(),
      TEMPORAL_ADDRESS: required("TEST_TEMPORAL_ADDRESS"),
      TEMPORAL_NAMESPACE: required("TEST_TEMPORAL_NAMESPACE"),
      TEMPORAL_TASK_QUEUE: id,
      MASTER_KEY: "a-master-key-for-tests-long-enough-to-be-one",
      KEY_DELIVERY_DIR: join(required("TEST_KEY_DELIVERY_DIR"), id),
      HOST: "127.0.0.1",
      PORT: "0",
      // Logs go to standard output as well: more than once there would be a log's doing.
      LOG_LEVEL: "trace",
    };
  }

  /** A server that has printed everything that a start prints. */
  async function start(): Promise<Child> {
    const child = Child.node("server/main.ts", ["server"], environment());
    children.push(child);
    await child.printed(/^New here\?.*$/m, START_MS);
    return child;
  }

  it("is printed once by every start while there is no organization, the same token, and never again after", async () => {
    const [first, second] = await Promise.all([start(), start()]);
    const [token = ""] = tokensIn(first);
    expect(tokensIn(first)).to.deep.equal([token]);
    expect(tokensIn(second)).to.deep.equal([token]);

    const [, baseUrl = ""] = await first.printed(/^ +REST +(\S+)\/v1$/m, START_MS);
    const owner = { organizationName: "First", name: "Ada", email: "ada@example.com", password: PASSWORD };
    // No worker runs: the answer does not wait for the organization to be ready.
    const answer = await new Api(baseUrl).call("POST", "/v1/setup", { body: { token, ...owner } });
    expect(answer.status, JSON.stringify(answer.body)).to.equal(201);
    expect(answer.body).to.have.nested.property("organization.status", "provisioning");
    for (const child of [first, second]) {
      expect(child.stdout.split(token), "the token in output and log").to.have.lengthOf(2);
      expect((await child.end("SIGTERM")).code).to.equal(0);
    }
    expect((await start()).stdout).not.to.include("Set up:");
  });
});
