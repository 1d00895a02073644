import { expect } from "chai";
import { staleBackupOf } from "../../../src/domain/ledger/stale-backup.ts";

/** A ledger at revision 10, which knows that its records show 8. */
const LEDGER = { revision: 10, recordedRevision: 8 };

describe("a ledger and its records, from backups of different times", () => {
  const cases = [
    ["neither is, where all is known", { ledger: 10, recorded: 10, isRead: true }, null],
    ["neither is, to a caller that knows nothing", { ledger: 0, recorded: 0, isRead: false }, null],
    ["the ledger is, where more was received of it", { ledger: 11, recorded: 8, isRead: true }, "ledger"],
    ["the ledger is, where its records show more", { ledger: 0, recorded: 11, isRead: true }, "ledger"],
    [
      "the records are, where it was told that they show more",
      { ledger: 0, recorded: 7, isRead: true },
      "records",
    ],
    [
      "neither is, where the records were read some time ago",
      { ledger: 0, recorded: 7, isRead: false },
      null,
    ],
  ] as const;
  for (const [title, known, stale] of cases) {
    it(title, () => expect(staleBackupOf(LEDGER, known)).to.equal(stale));
  }
});
