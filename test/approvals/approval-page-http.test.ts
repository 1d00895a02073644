import { expect } from "chai";
import { cookieNames } from "../../src/contract/cookies.ts";
import { sharedService } from "../support/service.ts";
import { newWorld } from "../support/world.ts";
import { send } from "../support/wire.ts";

describe("the page of a payment on hold, over HTTP", () => {
  let baseUrl: string;
  before(async () => {
    ({ baseUrl } = await sharedService());
  });

  it("is where approvalUrl says, and the same page for every id, with and without a session", async () => {
    const world = await newWorld();
    const agent = await world.agent({ autoApprovalThresholdCents: 0 });
    const { approval, approvalUrl } = await agent.pay();
    const path = `/approvals/${approval?.id ?? ""}`;
    expect(approvalUrl).to.equal(`${baseUrl}${path}`);
    const pages = await Promise.all([
      send(baseUrl, path),
      send(baseUrl, path, { headers: { cookie: `${cookieNames(baseUrl).session}=${world.token}` } }),
      send(baseUrl, `/approvals/apr_${"0".repeat(26)}`),
      send(baseUrl, "/approvals/%3Cscript%3E"),
    ]);
    const [first] = pages;
    expect([first?.status, first?.headers.get("content-type")]).to.deep.equal([
      200,
      "text/html; charset=utf-8",
    ]);
    for (const { body, headers, status } of pages) {
      expect([status, body]).to.deep.equal([200, first?.body]);
      expect(headers.getSetCookie()).to.deep.equal([]);
      expect(headers.get("referrer-policy")).to.equal("no-referrer");
    }
  });

  it("is there for GET and HEAD alone, and under no other path", async () => {
    const head = await send(baseUrl, "/approvals/any", { method: "HEAD" });
    expect([head.status, head.body]).to.deep.equal([200, ""]);
    for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
      const { body, status } = await send(baseUrl, "/approvals/any", { method });
      expect([404, 405], method).to.include(status);
      expect(String(body), method).not.to.include("<");
    }
    for (const path of ["/approvals/", "/approvals/any/"]) {
      expect((await send(baseUrl, path)).status, path).to.equal(301);
    }
    for (const path of ["/approvals/a/b", "/Approvals/any", "/approvals/%"]) {
      expect((await send(baseUrl, path)).status, path).to.equal(404);
    }
  });
});
