import { expect } from "chai";
import { inShares, SWEEPS_OF_ORGANIZATION_MAX } from "../../activities/sweep-shares.ts";
import type { Execution } from "../../src/messages/ledger.ts";
import { TestAccount } from "../domain/support/account.ts";
import { profile } from "../domain/support/actor.ts";
import { times } from "../support/world.ts";

describe("sweeps of several organizations at once", () => {
  it("one whose payments hang on a rail leaves places of the rail to others", async () => {
    const hanging: (() => void)[] = [];
    const executePayments = inShares(({ payments }) =>
      payments[0]?.profile.organizationId === profile.organizationId
        ? new Promise<Execution[]>((resolve) => hanging.push(() => resolve([])))
        : Promise.resolve([]),
    );
    const payment = new TestAccount({}).pay(1);
    const sweep = (organizationId: string) =>
      executePayments({ payments: [{ payment, profile: { ...profile, organizationId } }] }).then(
        () => "swept",
        () => "later",
      );
    const own = times(SWEEPS_OF_ORGANIZATION_MAX, () => sweep(profile.organizationId));
    expect(await sweep(profile.organizationId)).to.equal("later");
    expect(await sweep("another")).to.equal("swept");
    for (const end of hanging) end();
    expect(new Set(await Promise.all(own))).to.deep.equal(new Set(["swept"]));
    const again = sweep(profile.organizationId);
    hanging.at(-1)?.();
    expect(await again).to.equal("swept");
  });
});
