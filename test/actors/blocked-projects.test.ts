import { expect } from "chai";
import { LedgerLost, StaleLedger, StaleRecords } from "../../src/actors/actor-unavailable.ts";
import { times } from "../support/world.ts";
import { ledgersOn, place, refusing, turn } from "./support.ts";

const { projectId } = place;

describe("a project that waits for an operator", () => {
  for (const [reason, error] of [
    ["ledger_lost", new LedgerLost("lost")],
    ["stale_ledger", new StaleLedger("stale")],
    ["stale_records", new StaleRecords("stale")],
  ] as const) {
    it(`is named as ${reason} until its ledger answers, which is asked again by itself`, async () => {
      let nowMs = 0;
      let isMended = false;
      const ledgers = ledgersOn(
        (commands) => (isMended ? Promise.resolve(refusing(commands)) : Promise.reject(error)),
        () => nowMs,
      );
      const named = async (): Promise<readonly unknown[]> => {
        const found = ledgers.blockedProjects();
        for (const _turn of times(5, () => null)) await turn();
        return found;
      };
      expect(await named()).to.deep.equal([]);
      await ledgers.submit(place, { kind: "resume", agentId: "one" }).catch(() => null);
      expect(await named()).to.deep.equal([{ projectId, reason }]);
      nowMs = 5_000;
      await named();
      expect(await named(), "still blocked").to.deep.equal([{ projectId, reason }]);
      isMended = true;
      nowMs = 9_999;
      await named();
      expect(await named(), "asked a moment ago").to.deep.equal([{ projectId, reason }]);
      nowMs = 10_000;
      await named();
      expect(await named()).to.deep.equal([]);
    });
  }
});
