import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect } from "chai";
import { arrivedMsOf, inSlices } from "../../server/http/slices.ts";
import { times } from "../support/world.ts";

/** What the application does with each request before it waits for anything. */
const BEGINNING_MS = 2;
const REQUESTS = 50;

function busyFor(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

function requestTo(url: string): { request: IncomingMessage; response: ServerResponse } {
  const request = new IncomingMessage(new Socket());
  request.url = url;
  return { request, response: new ServerResponse(request) };
}

describe("a burst of requests", () => {
  const begun: string[] = [];
  let lastArrivedMs = 0;
  const listener = inSlices(
    (request) => {
      const { url = "" } = request;
      begun.push(url);
      lastArrivedMs = arrivedMsOf(request);
      busyFor(BEGINNING_MS);
    },
    ({ url }) => url === "/healthz",
  );
  const names = times(REQUESTS, (index) => `/${index}`);
  const arrive = (url: string): ServerResponse => {
    const { request, response } = requestTo(url);
    listener(request, response);
    return response;
  };
  beforeEach(async () => {
    // Those of the test before are over.
    for (let turn = 0; turn < REQUESTS; turn += 1) await nextTurn();
    begun.splice(0);
  });

  it("begins in the order of arrival, a few in each turn of the event loop", async () => {
    for (const name of names) arrive(name);
    const turns = [begun.length];
    while (begun.length < REQUESTS) {
      await nextTurn();
      turns.push(begun.length);
    }
    expect(begun).to.deep.equal(names);
    const most = Math.max(...turns.map((count, index) => count - (turns[index - 1] ?? 0)));
    // A stall of the machine makes a slice longer, though never as long as the burst.
    expect(most, turns.join(" ")).to.be.at.most(15);
  });

  it("begins more in each turn that other work makes long, so that none waits for many of them", async () => {
    for (const name of names) arrive(name);
    let turns = 0;
    while (begun.length < REQUESTS) {
      busyFor(30);
      await nextTurn();
      turns += 1;
    }
    expect(turns).to.be.below(10);
  });

  it("a request that waited for its turn still has the time of its arrival", async () => {
    for (const name of names) arrive(name);
    const allArrivedMs = performance.now();
    while (begun.length < REQUESTS) await nextTurn();
    expect(lastArrivedMs).to.be.at.most(allArrivedMs);
  });

  it("an urgent one is begun at once, before those that have come earlier", () => {
    for (const name of names) arrive(name);
    expect(begun).not.to.include(names.at(-1));
    arrive("/healthz");
    expect(begun.at(-1)).to.equal("/healthz");
  });

  it("one whose caller has gone meanwhile is not begun", async () => {
    const responses = names.map(arrive);
    responses.at(-1)?.destroy();
    for (let turn = 0; turn < REQUESTS; turn += 1) await nextTurn();
    expect(begun).to.include(names.at(-2));
    expect(begun).not.to.include(names.at(-1));
  });

  it("once it is over, the next request is begun as it comes", async () => {
    for (const name of names) arrive(name);
    while (begun.length < REQUESTS) await nextTurn();
    await nextTurn();
    begun.splice(0);
    arrive("/alone");
    expect(begun).to.deep.equal(["/alone"]);
  });
});
