import { ActorUnavailable } from "../../src/actors/actor-unavailable.ts";
import { randomBytes } from "node:crypto";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { forwardedCommands } from "../../server/http/forwarded-commands.ts";
import { type Forwarded, ForwardSeals } from "../../src/actors/forwarding.ts";
import { FORWARD_PATH, LedgerPeers } from "../../src/actors/ledger-peers.ts";
import type { LedgerReply } from "../../src/domain/ledger/commands.ts";
import { createLogger } from "../../src/lib/logger.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";
import { Sealer } from "../../src/secrets/sealer.ts";
import type { LiveServer } from "../../src/store/servers.ts";
import { times } from "../support/world.ts";
import { confirm, kindsIn, stage, stagedLedger } from "./stage.ts";
import { place, turn } from "./support.ts";

const sealsUnder = (key: string) =>
  new ForwardSeals(
    new Sealer(MasterKey.parse(key, "the test").deriveKeys("server-calls"), randomBytes),
    () => now,
  );

const KEY = "a-master-key-of-servers-that-forward";
const logger = createLogger({ level: "silent", file: null });
let now = 1_000_000;
const monotonic = { now: 1_000 };

const decided = (replies: readonly LedgerReply[]) => kindsIn(replies).filter((kind) => kind === "decided");

const send = async (url: string, body: string, path = FORWARD_PATH, method = "POST") =>
  (await fetch(`${url}${path}`, { method, ...(method === "GET" ? {} : { body }) })).status;

describe("servers that share ledgers", () => {
  const closing: (() => void)[] = [];
  afterEach(() => closing.splice(0).forEach((close) => close()));

  async function listening(listener: RequestListener): Promise<{ server: Server; url: string }> {
    const server = createServer(listener);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    closing.push(() => {
      server.close();
      server.closeAllConnections();
    });
    const { port } = server.address() as AddressInfo;
    return { server, url: `http://127.0.0.1:${String(port)}` };
  }

  /** A server with its mailboxes, over a ledger that all share. It sees those servers that it is told of. */
  async function serverOn(id: string, ledger = stagedLedger(), seen: () => readonly LiveServer[] = () => []) {
    const forwards: string[] = [];
    const seals = sealsUnder(KEY);
    const route = new LedgerPeers({
      ownId: id,
      live: () => Promise.resolve(seen()),
      seals,
      monotonicMs: () => monotonic.now,

      onForwarded: (result) => forwards.push(result),
      onError: () => undefined,
    });
    closing.push(() => route.close());
    const staged = stage({ ledger, route });
    const { server, url } = await listening(
      forwardedCommands({ ledgers: staged.ledgers, seals, serverId: id, logger }),
    );
    const kinds = () => staged.batches.flatMap(kindsIn);
    return { ...staged, forwards, id, kinds, route, server, url };
  }

  async function servers(count: number) {
    const ledger = stagedLedger();
    const all: Awaited<ReturnType<typeof serverOn>>[] = [];
    for (const number of times(count, (each) => each))
      all.push(await serverOn(`server-${String(number)}`, ledger, () => all));
    await Promise.all(all.map(({ route }) => route.refresh()));
    const owner = all.find(({ route }) => route.peerFor(place) === null);
    if (owner === undefined) throw new Error("nobody owns the ledger");
    return { all, ledger, owner, others: all.filter((each) => each !== owner) };
  }

  /** A server that forwards to one which answers as it is told. */
  async function beside(listener: RequestListener) {
    const ledger = stagedLedger();
    const peer = { id: "peer", url: (await listening(listener)).url };
    const server = await serverOn("server", ledger, () => [peer]);
    await server.route.refresh();
    return { ...server, ledger };
  }

  it("a ledger's commands go through one server; each writes the records of its own", async () => {
    const { all, ledger, owner, others } = await servers(3);
    const paid = all.map(({ pay }) => times(20, () => pay("one")));
    const replies = await Promise.all(
      all.flatMap(({ ledgers }, index) =>
        (paid[index] ?? []).map((command) => ledgers.submit(place, command)),
      ),
    );
    expect(decided(replies)).to.have.length(60);
    expect(ledger.accounts.get("one")?.open.size).to.equal(60);
    expect(others.flatMap(({ kinds }) => kinds())).to.deep.equal([]);
    expect(owner.batches.length, "updates").to.be.below(10);
    const [sender] = others;
    if (sender === undefined) throw new Error("there are others");
    const [command] = paid[all.indexOf(sender)] ?? [];
    if (command === undefined) throw new Error("it has paid");
    sender.ledgers.confirmLater(place, confirm(command), Promise.resolve());
    await sender.ledgers.flush(place, "one");
    expect(ledger.accounts.get("one")?.open.get(command.request.transactionId)?.confirmedRevision).to.equal(
      1,
    );
    const account = () => ledger.accounts.get("one");
    expect(sender.records.at(-1)?.revision).to.equal(account()?.revision);
    await sender.ledgers.submit(place, sender.pay("two"));
    await sender.ledgers.flushAll();
    expect(account()?.confirmedRevision).to.equal(account()?.revision);
  });

  it("refusals and failures of single commands come back as theirs", async () => {
    const { others } = await servers(2);
    const [sender] = others;
    if (sender === undefined) throw new Error("there is another");
    const ends = await Promise.allSettled([
      sender.ledgers.submit(place, sender.pay("one")),
      sender.ledgers.submit(place, sender.pay("nobody")),
      sender.ledgers.submit(place, { kind: "pause", agentId: "two" }),
      sender.ledgers.submit(place, sender.pay("three", { unless: "it rains" })),
    ]);
    const kinds = ends.map((end) => (end.status === "fulfilled" ? end.value.kind : String(end.reason)));
    expect(kinds.slice(0, 3)).to.deep.equal(["decided", "no_account", "account_status"]);
    expect(kinds[3]).to.match(/^ActorUnavailable: the actor refused a command/);
    expect(sender.forwards).to.not.include("failed");
  });

  for (const [title, listener] of [
    ["hangs", () => undefined],
    ["answers garbage", (_request, response) => response.end("garbage")],
    ["answers nothing", (request) => request.socket.destroy()],
    ["refuses", (_request, response) => response.writeHead(403).end()],
    ["dies in the middle", (_request, response) => void response.write(" ", () => response.destroy())],
  ] as const satisfies readonly (readonly [string, RequestListener])[]) {
    it(`where the other server ${title}, commands go to the ledger from here, each once`, async () => {
      const { batches, forwards, ledger, ledgers, pay } = await beside(listener);
      const replies = await Promise.all(times(30, () => ledgers.submit(place, pay("one"))));
      expect(decided(replies)).to.have.length(30);
      expect(ledger.accounts.get("one")?.open.size).to.equal(30);
      expect(forwards).to.include("failed").and.not.include("answered");
      await ledgers.submit(place, pay("one"));
      expect(forwards.length, "it is left alone for a while").to.be.below(17);
      expect(batches.length).to.be.greaterThan(0);
    });
  }

  it("requests that fail together have their server tried again after one pause", async () => {
    const failing: (() => void)[] = [];
    const { ledgers, pay, route } = await beside(({ socket }) => failing.push(() => socket.destroy()));
    const paid: Promise<unknown>[] = [];
    while (paid.length < 3) {
      paid.push(ledgers.submit(place, pay("one")));
      while (failing.length < paid.length) await turn();
    }
    failing.forEach((fail) => fail());
    await Promise.all(paid);
    expect(route.peerFor(place), "at once").to.equal(null);
    monotonic.now += 2_001;
    expect(route.peerFor(place)).to.not.equal(null);
  });

  it("a server that only beats holds up what was sent to it, and nothing after that", async () => {
    const { ledgers, pay, route } = await beside((_request, response) => {
      const beats = setInterval(() => response.write(" "), 100);
      response.on("close", () => clearInterval(beats));
    });
    const failure: unknown = await ledgers.submit(place, pay("one")).catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(ActorUnavailable);
    expect(route.peerFor(place)).to.equal(null);
  }).timeout(20_000);

  it("a server that was held up itself does not take another for hung", async () => {
    const seals = sealsUnder(KEY);
    const peer = await serverOn("peer");
    const answer = forwardedCommands({ ledgers: peer.ledgers, seals, serverId: "peer", logger });
    const { forwards, ledgers, pay } = await beside((request, response) => {
      const until = performance.now() + 1_500;
      while (performance.now() < until);
      answer(request, response);
    });
    await ledgers.submit(place, pay("one"));
    expect(forwards).to.deep.equal(["answered"]);
  });

  it("an answer that was not sealed for these commands decides nothing", async () => {
    const forger = sealsUnder(`${KEY}-of-another`);
    const everything: Forwarded = {
      replies: [{ kind: "confirmed" }],
      accounts: [],
      closed: {},
      fill: null,
    };
    const { ledgers, pay } = await beside((_request, response) => {
      response.end(forger.sealAnswer("any", everything));
    });
    expect((await ledgers.submit(place, pay("one"))).kind).to.equal("decided");
  });

  it("commands that reached the ledger before their answer was lost are the same payments", async () => {
    const ledger = stagedLedger();
    const seals = sealsUnder(KEY);
    const peer = await serverOn("peer", ledger);
    const { url } = await listening((request, response) => {
      // Does what it is told to, and says nothing.
      forwardedCommands({ ledgers: peer.ledgers, seals, serverId: "peer", logger })(
        request,
        Object.assign(response, { end: () => response.destroy() }),
      );
    });
    const { ledgers, pay, route } = await serverOn("server", ledger, () => [{ id: "peer", url }]);
    await route.refresh();
    const command = pay("one");
    const reply = await ledgers.submit(place, command).catch((error: unknown) => error);
    expect(ledger.accounts.get("one")?.open.size).to.equal(1);
    expect([...(ledger.accounts.get("one")?.open.keys() ?? [])]).to.deep.equal([
      command.request.transactionId,
    ]);
    // Its texts are looked up in the records, which there are none of here.
    expect(String(reply)).to.include("nothing is confirmed here");
  });

  it("servers that disagree about whose a ledger is forward once, and no further", async () => {
    const ledger = stagedLedger();
    const seen: { first: LiveServer[]; second: LiveServer[] } = { first: [], second: [] };
    const first = await serverOn("first", ledger, () => seen.first);
    const second = await serverOn("second", ledger, () => seen.second);
    seen.first.push(second);
    seen.second.push(first);
    await Promise.all([first.route.refresh(), second.route.refresh()]);
    const replies = await Promise.all(
      [first, second].flatMap(({ ledgers, pay }) => times(10, () => ledgers.submit(place, pay("one")))),
    );
    expect(decided(replies)).to.have.length(20);
  });

  describe("the internal port", () => {
    it("takes sealed commands once, for this server, for some seconds, and nothing else", async () => {
      const { ledger, pay, url } = await serverOn("server");
      const forwarded = () => ({ project: place, commands: [pay("one")] });
      const good = sealsUnder(KEY).sealCommands("server", forwarded()).sealed;
      expect(await send(url, good)).to.equal(200);
      expect(await send(url, good), "again").to.equal(403);
      const plain = JSON.stringify({ ...forwarded(), nonce: "x", sentAt: now });
      expect(await send(url, plain), "in the clear").to.equal(403);
      const foreign = sealsUnder(`${KEY}-of-another`).sealCommands("server", forwarded()).sealed;
      expect(await send(url, foreign), "under another key").to.equal(403);
      const misled = sealsUnder(KEY).sealCommands("another", forwarded()).sealed;
      expect(await send(url, misled), "for another server").to.equal(403);
      const altered = sealsUnder(KEY).sealCommands("server", forwarded()).sealed;
      expect(await send(url, `${altered.slice(0, -4)}AAAA`), "altered").to.equal(403);
      const old = sealsUnder(KEY).sealCommands("server", forwarded()).sealed;
      now += 31_000;
      expect(await send(url, old), "too late").to.equal(403);
      const answer = sealsUnder(KEY).sealAnswer("server", {
        replies: [],
        accounts: [],
        closed: {},
        fill: null,
      });
      expect(await send(url, answer), "an answer").to.equal(403);
      expect(await send(url, "x".repeat(3_000_000)), "too long").to.equal(413);
      expect(await send(url, "", "/v1/agents", "GET"), "the public API").to.equal(404);
      expect(ledger.accounts.get("one")?.open.size).to.equal(1);
    });
  });
});
