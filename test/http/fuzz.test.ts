import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { CALLERS } from "../../lab/fuzz/credentials.ts";
import { fuzz } from "../../lab/fuzz/run.ts";
import { ensureSchemathesis } from "../../lab/fuzz/schemathesis.ts";
import { sharedService, type TestService } from "../support/service.ts";
import { shortOrSoak, someOrAll } from "../support/soak.ts";

/** A taste of `npm run fuzz`, as one of the four callers, another one in each run. */
const SECONDS = shortOrSoak(3, 12);
const SEED = 7;

describe("requests by the OpenAPI document, valid and invalid", function () {
  this.timeout(300_000);
  let service: TestService;
  let command: string;
  before(async function () {
    const found = await ensureSchemathesis(process.env, (line) => process.stdout.write(`    ${line}\n`));
    if (typeof found !== "string") {
      process.stdout.write(`    pending: ${found.reason}\n`);
      return this.skip();
    }
    command = found;
    service = await sharedService();
  });

  for (const caller of someOrAll(CALLERS, 1)) {
    it(`are answered as it says, made by ${caller === "anonymous" ? "an anonymous caller" : `a caller with: ${caller}`}`, async () => {
      const owner = await service.organization();
      const folder = await mkdtemp(join(tmpdir(), "fuzz-"));
      const { baseUrl } = service;
      const pass = {
        baseUrl,
        command,
        folder,
        caller,
        owner,
        seed: SEED,
        maxExamples: 1,
        maxSeconds: SECONDS,
      };
      const { failures, output, requests } = await fuzz(pass);
      expect(failures, output).to.equal(0);
      // How many there are in its seconds depends on how busy the machine is.
      expect(requests, output).to.be.above(0);
    });
  }
});
