import { expect } from "chai";
import { Shops } from "../../src/rails/challenge/shops.ts";
import { openHandMade } from "./hand-made.ts";

const NAME = "shop.acme.com";
const ALLOWED = "127.0.0.1";

describe("a shop whose name leads elsewhere once it has asked for payment", () => {
  it("is not paid there: each request looks it up, and goes where it may", async () => {
    const shop = await openHandMade((_visit, response) => void response.writeHead(402).end());
    const answers = [ALLOWED, "127.0.0.2", "10.0.0.1", ALLOWED];
    const resolve = async () => answers.splice(0, 1);
    const shops = new Shops({ allowCidrs: [`${ALLOWED}/32`], resolve });
    const url = `http://${NAME}:${new URL(shop.url).port}/`;
    const visit = async (payment: string | null) => {
      const headers = payment === null ? {} : { "payment-signature": payment };
      const shopper = { organizationId: "org_1", agentId: "agt_1" };
      const fetched = await shops.fetch(shopper, { url, method: "GET", headers, body: null });
      return fetched?.kind === "failed" ? fetched.urlProblem : fetched?.httpStatus;
    };
    expect(await visit(null)).to.equal(402);
    for (const elsewhere of ["127.0.0.2", "10.0.0.1"])
      expect(await visit(elsewhere)).to.equal("resolves to an address that is not public");
    expect(await visit("the payment")).to.equal(402);
    expect(shop.visits.map(({ payment }) => payment)).to.deep.equal([null, "the payment"]);
    shops.close();
    await shop.close();
  });
});
