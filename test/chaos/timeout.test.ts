import { access } from "node:fs/promises";
import { expect } from "chai";
import { withSite } from "../../lab/chaos/run.ts";

const TIMEOUT_MS = 50;
const never = new Promise<never>(() => undefined);

describe("a run of chaos or of a cluster", () => {
  it("that does not come to its end is broken off after its timeout, and leaves nothing behind", async () => {
    const stopped: string[] = [];
    const options = { name: "timeout", keep: false, seed: 1, say: () => undefined, timeoutMs: TIMEOUT_MS };
    const start = (dataDir: string) =>
      Promise.resolve({ stop: () => Promise.resolve(void stopped.push(dataDir)) });
    const broken = await withSite({ ...options, start }, () => never).catch(String);
    expect(broken).to.equal("Error: the run took more than 0.05 s");
    expect(stopped).to.have.length(1);
    expect(await access(stopped[0] ?? "").catch(() => "gone")).to.equal("gone");
    const stuck = await withSite({ ...options, start: () => never }, () => never).catch(String);
    expect(stuck).to.equal(broken);
  });
});
