import { expect } from "chai";
import { BatchCapacity } from "../../src/actors/batch-capacity.ts";
import { FairQueue, type Urgency } from "../../src/lib/fair-queue.ts";
import { times } from "../support/world.ts";

interface Item {
  readonly name: string;
  readonly urgency: Urgency;
}

const item = (name: string, urgency: Urgency = "none"): Item => ({ name, urgency });

const newQueue = () => new FairQueue<Item>(({ urgency }) => urgency);

/** Takes so many; their names. */
const taken = (queue: FairQueue<Item>, places: number): readonly string[] => {
  const capacity = new BatchCapacity(places);
  return queue.take(({ name }, isFirst) => capacity.tryReserve(name, 0, isFirst)).map(({ name }) => name);
};

const counted = (names: readonly string[]): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
};

describe("a fair queue", () => {
  it("takes eight of each sender at the most while others send, and for some batches after them", () => {
    const queue = newQueue();
    for (const _each of times(100, () => null)) queue.add("loud", item("loud"));
    for (const _each of times(10, () => null)) queue.add("quiet", item("quiet"));
    queue.add("single", item("single"));
    expect(counted(taken(queue, 17))).to.deep.equal({ loud: 8, quiet: 8, single: 1 });
    expect(counted(taken(queue, 128)), "the quiet one had little left").to.deep.equal({ loud: 8, quiet: 2 });
    // The others may come again at any moment, and would wait for all that goes with a large batch.
    for (let batches = 0; batches < 7; batches += 1) {
      expect(counted(taken(queue, 128))).to.deep.equal({ loud: 8 });
    }
    expect(counted(taken(queue, 128)), "no other sender has come").to.deep.equal({ loud: 28 });
    expect(queue.size).to.equal(0);
  });

  it("a sender that had a turn comes last the next time, however much it sends", () => {
    const queue = newQueue();
    for (const _each of times(50, () => null)) queue.add("loud", item("loud"));
    queue.add("quiet", item("quiet"));
    expect(counted(taken(queue, 8))).to.deep.equal({ loud: 8 });
    for (const _each of times(50, () => null)) queue.add("loud", item("loud"));
    expect(taken(queue, 8)[0]).to.equal("quiet");
  });

  it("of more senders than a batch has room for, each has its turn in the next batches", () => {
    const queue = newQueue();
    const senders = times(24, (index) => `sender ${String(index)}`);
    for (const sender of senders) for (const name of times(50, () => sender)) queue.add(sender, item(name));
    const [first, second] = [taken(queue, 128), taken(queue, 128)];
    expect(Object.keys(counted(first))).to.deep.equal(senders.slice(0, 16));
    expect(Object.keys(counted(second)).slice(0, 8)).to.deep.equal(senders.slice(16));
  });

  it("one sender alone fills a batch, and keeps its order", () => {
    const queue = newQueue();
    for (const place of times(30, (index) => index)) queue.add("one", item(String(place)));
    expect(taken(queue, 20)).to.deep.equal(times(20, String));
    expect(taken(queue, 20)).to.deep.equal(times(10, (index) => String(index + 20)));
  });

  it("a stop goes first, but never before what stops or starts the same sender", () => {
    const queue = newQueue();
    queue.add("other", item("other"));
    queue.add("one", item("pay 1"));
    queue.add("one", item("resume", "start"));
    queue.add("one", item("pay 2"));
    queue.add("one", item("pause", "stop"));
    queue.add("one", item("pay 3"));
    expect(taken(queue, 10)).to.deep.equal(["pay 1", "resume", "pause", "other", "pay 2", "pay 3"]);
    expect(queue.size).to.equal(0);
  });

  it("what is put back goes first again, stops before all", () => {
    const queue = newQueue();
    queue.add("one", item("pay"));
    queue.add("two", item("pay of two"));
    queue.requeue("one", [item("pause", "stop"), item("earlier")]);
    expect(taken(queue, 10)).to.deep.equal(["pause", "pay of two", "earlier", "pay"]);
  });

  it("the first goes in any case, and what does not fit any more waits for the next", () => {
    const queue = newQueue();
    const large = "x".repeat(600_000);
    queue.add("one", item(large));
    queue.add("one", item("small"));
    expect(taken(queue, 10)).to.deep.equal([large]);
    expect(taken(queue, 10)).to.deep.equal(["small"]);
    expect(taken(queue, 10)).to.deep.equal([]);
  });
});
