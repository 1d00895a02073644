import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";

/** What a process keeps beyond one call, in a Map or Set that bounds nothing by itself, and what bounds it. */
const BOUNDS: Readonly<Record<string, string>> = {
  "activities/audit/appender.ts #chains": "HEADS_MAX, and chains that have something waiting",
  "activities/chain/contracts.ts initCodeHashes": "INIT_CODE_HASHES_MAX",
  "activities/chain/taken-nonces.ts #told": "TOLD_MAX",
  "activities/chain/taken-nonces.ts #untold": "UNTOLD_MAX",
  "activities/inputs/agent-places.ts #kept": "KEPT_MAX",
  "activities/rails/wallet/limits.ts #raising": "limits that are being raised",
  "activities/rails/wallet/wallets.ts #kept": "KEPT_MAX",
  "activities/webhooks/slots.ts #endpoints": "REMEMBERED_MAX, and exchanges under way",
  "activities/webhooks/slots.ts #organizations": "REMEMBERED_MAX, and exchanges under way",
  "activities/webhooks/slots.ts #tests": "REMEMBERED_MAX, and exchanges under way",
  "server/actors/account-records.ts #unconfirmed":
    "until the ledger knows; its mailbox retires when nothing is left",
  "server/actors/account-records.ts #unwritten": "until the next tick writes them",
  "server/actors/account-records.ts #writing": "writes under way",
  "server/actors/agent-actors.ts #mailboxes": "agents with something under way",
  "server/actors/fair-queue.ts #bySender": "senders with something waiting",
  "server/actors/fair-queue.ts #stopped": "senders with a stop waiting",
  "server/actors/ledger-mailbox.ts #untold": "tellings under way",
  "server/actors/ledgers.ts #mailboxes": "projects with something under way",
  "server/audit/outbox.ts #removing": "removals under way",
  "server/audit/refusals.ts #taken": "WINDOWS_MAX: places of windows that are open",
  "server/audit/refusals.ts #windows": "WINDOWS_MAX",
  "server/auth/organizations.ts #kept": "ORGANIZATIONS_MAX",
  "server/auth/session-token.ts #verified": "VERIFIED_TOKENS_MAX",
  "server/changes/feed.ts #organizationOf": "AGENTS_KNOWN_MAX",
  "server/changes/kinds.ts kindsOf": "a constant",
  "server/changes/log.ts #organizations": "BOUNDS: changes in all",
  "server/changes/organization-stream.ts #followers": "open streams",
  "server/changes/organization-stream.ts #pending": "a row for each kind of change, PENDING_MAX ids in each",
  "server/changes/organization-stream.ts #toldAtMs": "kinds of change",
  "server/changes/streams.ts #open": "OPEN_MAX",
  "server/changes/streams.ts #organizations": "those of open streams",
  "server/creates/creates.ts #underWay": "creates under way",
  "server/first-uses.ts #accepted": "REMEMBERED_MAX",
  "server/single-flight.ts #underWay": "work under way",
  "server/key-use.ts #used": "keys used since the last write, 5 s ago at most",
  "server/metrics/metrics.ts #queues": "names of queues",
  "server/payment-changes.ts #waiting": "calls that wait",
  "server/rules/ready-cache.ts #kept": "READY_RULES_BYTES_MAX",
  "server/rules/rules-in-force.ts #reading": "readings under way",
  "server/rules/zone-offsets.ts #known": "ZONES_MAX",
  "server/secrets/master-key.ts #derived": "purposes of keys",
  "server/keyed-mutex.ts #last": "turns that are taken or waited for",
  "server/zone-offset.ts formatters": "FORMATTERS_MAX",
  "src/lib/guarded-fetch/guarded-fetch.ts #running": "exchanges under way",
};

const FOLDERS = ["server", "activities", "src/lib"];
/** Commands end, and with them what they remember. */
const OF_COMMANDS = "server/admin/";

/** A field of a class, or a constant of a module, that begins empty and grows. */
const FIELD = /^ {2}(?:readonly )?(#\w+)(?:: [^=\n]+)? = new (?:Map|Set)(?:<.*>)?\(\);/gm;
const CONSTANT = /^const (\w+)(?:: [^=\n]+)? = new (?:Map|Set)(?:<.*>)?\(/gm;
/** Constants in capitals, and what is typed as read only, are filled once. */
const isFilledOnce = (name: string, text: string): boolean =>
  name === name.toUpperCase() || /: Readonly(Map|Set)</.test(text);

async function found(): Promise<readonly string[]> {
  const all = await Promise.all(
    FOLDERS.map(async (folder) => {
      const names = await readdir(folder, { recursive: true });
      return names.filter((name) => name.endsWith(".ts")).map((name) => join(folder, name));
    }),
  );
  const places: string[] = [];
  for (const file of all.flat().filter((each) => !each.startsWith(OF_COMMANDS))) {
    const source = await readFile(file, "utf8");
    for (const pattern of [FIELD, CONSTANT]) {
      for (const [text, name = ""] of source.matchAll(pattern)) {
        if (!isFilledOnce(name, text)) places.push(`${file} ${name}`);
      }
    }
  }
  return places.toSorted();
}

describe("what a process remembers", () => {
  it("is bounded: every Map and Set that outlives a call has a bound that this table names", async () => {
    expect(await found()).to.deep.equal(Object.keys(BOUNDS).toSorted());
  });

  it("a bound that is named is there, in the file that it bounds", async () => {
    for (const [place, bound] of Object.entries(BOUNDS)) {
      const [file = ""] = place.split(" ");
      const [name = ""] = /^[A-Z_]{4,}/.exec(bound) ?? [];
      if (name !== "") expect(await readFile(file, "utf8"), place).to.match(new RegExp(`const ${name}\\b`));
    }
  });
});
