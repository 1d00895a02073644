import { expect } from "chai";
import { ALL_PAYMENT_TOOLS, RAIL_OF, railPayment } from "../../src/contract/rails.ts";
import { RAILS } from "../../src/domain/ledger/payment.ts";

describe("the contract's payments", () => {
  it("have one for each rail, and a tool that pays by it", () => {
    const rails = railPayment.options.map(({ shape }) => shape.rail.value);
    expect(rails).to.have.members([...RAILS]);
    expect(ALL_PAYMENT_TOOLS.map((tool) => RAIL_OF[tool])).to.have.members([...RAILS]);
  });
});
