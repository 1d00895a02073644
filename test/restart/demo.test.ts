import { expect } from "chai";
import { Api } from "../support/api.ts";
import { Child, ServiceProcess } from "../support/process.ts";

const DEMO_MS = 240_000;

describe("the demo", () => {
  let service: ServiceProcess;
  before(async () => {
    service = await ServiceProcess.create({ engines: "shared" });
    await service.start();
  });
  after(() => service.dispose());

  it("plays to its end on a fresh service, and leaves its set-up link as it is", async () => {
    const [, token] = await service.child.printed(/^Set up: \S+#token=([\w-]{43})$/m, DEMO_MS);
    const { baseUrl } = service.runtime;
    const demo = Child.node("scripts/demo.ts", [], service.env);
    const exit = await demo.exit(DEMO_MS);
    expect(demo.stderr).to.equal("");
    expect(exit, demo.stdout).to.deep.equal({ code: 0, signal: null });
    // An approval arrives signed, and a copy that was changed is refused.
    expect(demo.stdout).to.match(/^receiver got `approval\.requested`, its signature is good: /m);
    expect(demo.stdout).to.match(/^receiver refused a copy of it /m);
    expect(demo.stdout.trimEnd()).to.match(/\nAll steps passed\.$/);
    const { status } = await new Api(baseUrl).call("POST", "/v1/setup/check", { body: { token } });
    expect(status).to.equal(204);
  });
});
