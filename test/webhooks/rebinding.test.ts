import { expect } from "chai";
import { dial, trustOf } from "../../src/lib/guarded-fetch/dial.ts";
import {
  GuardedFetch,
  type GuardedOutcome,
  type GuardOptions,
} from "../../src/lib/guarded-fetch/guarded-fetch.ts";
import { startTlsReceiver, type TlsReceiver } from "../support/tls-receiver.ts";

const NAME = "hooks.acme.com";
const PUBLIC = "93.184.215.14";
const LOOPBACK = "127.0.0.1";
const LOCAL_NETWORKS = ["127.0.0.0/8", "::1/128"];
const NOT_PUBLIC = "its address is not public";

/** Gives one answer after the other, the last one for ever, and counts how often it was asked. */
function answering(...answers: readonly (readonly string[])[]) {
  let asked = 0;
  return {
    resolve: async () => {
      asked += 1;
      return answers[Math.min(asked, answers.length) - 1] ?? [];
    },
    get asked() {
      return asked;
    },
  };
}

const reasonOf = (outcome: GuardedOutcome): string =>
  outcome.kind === "failed" ? outcome.reason : `answered ${String(outcome.httpStatus)}`;

describe("names whose addresses change", () => {
  let receiver: TlsReceiver;
  before(async () => {
    receiver = await startTlsReceiver(undefined, { names: [NAME] });
  });
  after(() => receiver.close());

  const url = (host = NAME): string => `https://${host}:${String(receiver.port)}/hook`;

  /** Everything but the address would let it through: the certificate is trusted, and the port allowed. */
  const guard = (options: Partial<GuardOptions>): GuardedFetch =>
    new GuardedFetch({ allowCidrs: [], extraCa: receiver.caPem, allowPorts: [receiver.port], ...options });

  const send = (guarded: GuardedFetch, to = url()): Promise<GuardedOutcome> =>
    guarded.send({ url: to, method: "POST", headers: {}, body: "{}", timeoutMs: 20_000 });

  /** Runs something and says how many connections the receiver saw meanwhile. */
  async function connectionsOf(work: () => Promise<void>): Promise<number> {
    const before = receiver.connections;
    await work();
    return receiver.connections - before;
  }

  it("one that is public when judged and local when sent to is not connected to", async () => {
    for (const local of [LOOPBACK, "::1", "::ffff:127.0.0.1", "10.0.0.1", "169.254.169.254"]) {
      const guarded = guard({ resolve: answering([PUBLIC], [local]).resolve });
      const connections = await connectionsOf(async () => {
        expect(await guarded.judge(url())).to.equal(null);
        expect(reasonOf(await send(guarded)), local).to.equal(NOT_PUBLIC);
      });
      expect(connections).to.equal(0);
    }
  });

  it("each request asks once, and connects to nothing but what that answer says", async () => {
    const names = answering([LOOPBACK], ["10.0.0.1"], [LOOPBACK], ["10.0.0.1"]);
    const guarded = guard({ allowCidrs: LOCAL_NETWORKS, resolve: names.resolve });
    const connections = await connectionsOf(async () => {
      for (const expected of ["answered 204", NOT_PUBLIC, "answered 204", NOT_PUBLIC])
        expect(reasonOf(await send(guarded))).to.equal(expected);
    });
    expect(names.asked).to.equal(4);
    expect(connections).to.equal(2);
  });

  it("one address of several that is not public refuses them all, wherever it stands", async () => {
    const closed = [LOOPBACK, "::1", "192.168.0.1", "fe80::1", "::ffff:1.1.1.1"];
    for (const address of closed)
      for (const addresses of [
        [address, PUBLIC],
        [PUBLIC, "1.1.1.1", address],
      ]) {
        const guarded = guard({ resolve: async () => addresses });
        const connections = await connectionsOf(async () => {
          expect(await guarded.judge(url()), address).to.match(/^resolves to an address that is not public/);
          expect(reasonOf(await send(guarded)), address).to.equal(NOT_PUBLIC);
        });
        expect(connections).to.equal(0);
      }
  });

  it("of several addresses that are allowed the next one is tried when one refuses", async () => {
    const guarded = guard({ allowCidrs: LOCAL_NETWORKS, resolve: async () => ["127.0.0.2", LOOPBACK] });
    expect(reasonOf(await send(guarded))).to.equal("answered 204");
  });

  it("the system's own answer is judged the same way", async () => {
    const local = url("localhost");
    expect(reasonOf(await send(guard({ allowCidrs: LOCAL_NETWORKS }), local))).to.equal("answered 204");
    const other = guard({ allowCidrs: ["10.0.0.0/8"] });
    expect(await other.judge(local)).to.match(/^must name a host of the public internet/);
    expect(reasonOf(await send(other, local))).to.equal("its URL is not allowed");
  });

  it("an address as host is judged though nothing is looked up", async () => {
    const names = answering([PUBLIC]);
    const guarded = guard({ resolve: names.resolve });
    const connections = await connectionsOf(async () => {
      expect(reasonOf(await send(guarded, url(LOOPBACK)))).to.equal(NOT_PUBLIC);
    });
    expect([names.asked, connections]).to.deep.equal([0, 0]);
  });

  it("no byte of a request goes to an address that the connection should not have", async () => {
    const before = receiver.requests.length;
    const asked: string[] = [];
    const failure = await dial({
      destination: { host: NAME, isAddress: false, port: receiver.port, isTls: true, path: "/" },
      addresses: [LOOPBACK],
      trust: trustOf(receiver.caPem),
      mayTalkTo: (address) => {
        asked.push(address);
        return false;
      },
      signal: new AbortController().signal,
    }).then(
      () => "connected",
      (error: unknown) => (error instanceof Error ? error.message : "failed"),
    );
    expect(failure).to.equal(NOT_PUBLIC);
    expect(asked).to.deep.equal([LOOPBACK]);
    expect(receiver.requests.length).to.equal(before);
  });
});
