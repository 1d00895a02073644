import { expect } from "chai";
import { type LimitsDependencies, WalletLimits } from "../../src/rails/wallet/limits.ts";

describe("due limits of wallets", () => {
  it("an agent whose record names a foreign wallet holds no other's limit up, and is reported", async () => {
    const [looked, reported]: [string[], unknown[]] = [[], []];
    const limits = new WalletLimits({
      clock: () => new Date(),
      onWarning: (_message: string, details: object) => reported.push(details),
      wallets: {
        takeDue: () => Promise.resolve(["forged", "genuine"]),
        of: (agentId: string) => {
          looked.push(agentId);
          if (agentId === "forged") return Promise.reject(new Error("not the agent's"));
          return Promise.resolve(null);
        },
      },
    } as unknown as LimitsDependencies);
    await limits.setDue();
    expect(looked).to.deep.equal(["forged", "genuine"]);
    expect(reported).to.deep.equal([{ agentId: "forged", error: "not the agent's" }]);
  });
});
