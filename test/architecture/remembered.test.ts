import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";

/** What a process keeps beyond one call, in a Map or Set that bounds nothing by itself, and what bounds it. */
const BOUNDS: Readonly<Record<string, string>> = {
  "src/audit/chain/appender.ts #chains": "CACHED_HEADS_MAX, and chains that have something waiting",
  "src/chain/foreign-nonces.ts #unexplained": "UNEXPLAINED_MAX",
  "src/simulations/simulations.ts #running": "organizations whose simulation is under way",
  "src/webhooks/delivery/slots.ts #endpoints": "TRACKED_MAX, and exchanges under way",
  "src/webhooks/delivery/slots.ts #organizations": "TRACKED_MAX, and exchanges under way",
  "src/webhooks/delivery/slots.ts #tests": "TRACKED_MAX, and exchanges under way",
  "src/actors/account-records.ts #foreseeing": "its mailbox retires when nothing is left",
  "src/actors/account-records.ts #unconfirmed":
    "until the ledger knows; its mailbox retires when nothing is left",
  "src/actors/account-records.ts #unwritten": "until the next tick writes them",
  "src/actors/account-records.ts #writing": "writes under way",
  "src/actors/agent-actors.ts #mailboxes": "agents with something under way",
  "src/lib/fair-queue.ts #bySender": "senders with something waiting",
  "src/lib/fair-queue.ts #dueSinceMs": "senders with something waiting",
  "src/lib/fair-queue.ts #stopped": "senders with a stop waiting",
  "src/actors/ledger-mailbox.ts #inFlight": "FORWARDS_MAX, and one update",
  "src/actors/ledger-peers.ts #down": "servers that are live",
  "src/actors/ledger-mailbox.ts #unpublished": "publications under way",
  "src/actors/ledgers.ts #mailboxes": "projects with something under way",
  "src/actors/ledgers.ts #refreshing": "commands under way",
  "src/audit/audit-outbox.ts #removing": "removals under way",
  "src/audit/refusals.ts #countersInUse": "WINDOWS_MAX: counters of windows that are open",
  "src/audit/refusals.ts #windows": "WINDOWS_MAX",
  "src/identity/session-token.ts #verified": "VERIFIED_TOKENS_MAX",
  "src/changes/feed.ts #organizationOf": "AGENTS_KNOWN_MAX",
  "src/changes/kinds.ts kindsOf": "a constant",
  "src/changes/log.ts #organizations": "BOUNDS: changes in all",
  "src/changes/organization-stream.ts #subscribers": "open streams",
  "src/changes/organization-stream.ts #pending": "a row for each kind of change, PENDING_MAX ids in each",
  "src/changes/organization-stream.ts #sentAtMs": "kinds of change",
  "src/changes/streams.ts #open": "OPEN_MAX",
  "src/changes/streams.ts #organizations": "those of open streams",
  "src/agents/creates/creates.ts #inFlight": "creates under way",
  "src/lib/single-flight.ts #inFlight": "work under way",
  "src/agents/key-use.ts #used": "keys used since the last write, 5 s ago at most",
  "src/metrics/metrics.ts #queues": "names of queues",
  "src/payments/payment-changes.ts #waiting": "calls that wait",
  "src/payments/rules/ready-cache.ts #entries": "READY_BYTES_MAX",
  "src/payments/rules/rules-in-force.ts #reading": "readings under way",
  "src/rails/card/inbound.ts #unread": "READS: reads that wait for their turn",
  "src/rails/challenge/rail.ts #hands": "calls whose purchase is being made",
  "src/secrets/master-key.ts #derived": "purposes of keys",
  "src/lib/gate.ts #insideOf": "names that hold a permit",
  "src/lib/keyed-mutex.ts #queues": "turns that are taken or waited for",
  "src/lib/guarded-fetch/guarded-fetch.ts #running": "exchanges under way",
};

const FOLDERS = ["server", "activities", "src"];
/** Commands and starts end, and with them what they remember; decisions remember nothing. */
const OTHERS = ["server/admin/", "src/engines/", "src/domain/", "src/contract/", "src/client/"];

/** A field of a class, set where it is declared or in the constructor, and what a module keeps; however it is written, over several lines, too. */
const FIELD =
  /^ {2}(?:(?:private|protected|public|static|readonly) )*(#?\w+)(?:: [^=;]+?)? =\s+new (?:Map|Set)\b/gm;
const TYPED_FIELD = /^ {2}(?:(?:static|readonly) )*(#\w+)\??:\s+(?:Map|Set)</gm;
const OF_MODULE = /^(?:export )?(?:const|let|var) (\w+)(?:: [^=;]+?)? =\s+new (?:Map|Set)\b/gm;
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
  for (const file of all.flat().filter((each) => !OTHERS.some((room) => each.startsWith(room)))) {
    const source = await readFile(file, "utf8");
    places.push(...keptIn(source).map((name) => `${file} ${name}`));
  }
  return places.toSorted();
}

function keptIn(source: string): readonly string[] {
  const matches = [FIELD, TYPED_FIELD, OF_MODULE].flatMap((pattern) => [...source.matchAll(pattern)]);
  const names = matches.flatMap(([text, name = ""]) => (isFilledOnce(name, text) ? [] : [name]));
  return [...new Set(names)];
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
