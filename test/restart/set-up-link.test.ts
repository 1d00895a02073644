import { expect } from "chai";
import { Api, onceReachable } from "../support/api.ts";
import { Child } from "../support/process.ts";
import { PASSWORD } from "../support/service.ts";
import { roleEnvironment } from "./support/roles.ts";

const START_MS = 120_000;

const tokensIn = ({ stdout }: Child): string[] =>
  [...stdout.matchAll(/^Set up: http:\/\/localhost:\d+\/setup#token=([\w-]{43})$/gm)].map(
    ([, token = ""]) => token,
  );

describe("The set-up link of a server's start", () => {
  const children: Child[] = [];
  after(async () => {
    await Promise.all(children.map((child) => child.end("SIGKILL")));
  });

  // Logs go to standard output as well: more than once there would be a log's doing.
  const environment = { ...roleEnvironment(), LOG_LEVEL: "trace" };

  /** A server that has printed everything that a start prints. */
  async function start(): Promise<Child> {
    const child = Child.node("server/main.ts", ["server"], environment);
    children.push(child);
    await child.printed(/^New here\?.*$/m, START_MS);
    return child;
  }

  it("is printed by every start with the same token, until there is an organization", async () => {
    const [first, second] = await Promise.all([start(), start()]);
    const [token = ""] = tokensIn(first);
    expect(tokensIn(first)).to.deep.equal([token]);
    expect(tokensIn(second)).to.deep.equal([token]);

    const [, baseUrl = ""] = await first.printed(/^ +REST +(\S+)\/v1$/m, START_MS);
    const owner = { organizationName: "First", name: "Ada", email: "ada@example.com", password: PASSWORD };
    const api = new Api(baseUrl);
    // A link is used up by the first call that takes effect, even if that was told to come again.
    let statuses = [201];
    const answer = await onceReachable((repeat) => {
      if (repeat > 0) statuses = [201, 404];
      return api.call("POST", "/v1/setup", { body: { token, ...owner } });
    });
    expect(answer.status, JSON.stringify(answer.body)).to.be.oneOf(statuses);
    const session = await api.signIn(owner.email, owner.password);
    // No worker runs that could make it ready.
    const { body } = await api.surely("GET", "/v1/organization", { token: session });
    expect(body).to.have.nested.property("organization.status", "provisioning");
    expect(body, "without embedded engines").to.have.nested.property("organization.plan", "free");
    for (const child of [first, second]) {
      expect(child.stdout.split(token), "the token in output and log").to.have.lengthOf(2);
      expect((await child.end("SIGTERM")).code).to.equal(0);
    }
    expect((await start()).stdout).not.to.include("Set up:");
  });
});
