import { EventEmitter, once } from "node:events";
import type { Socket } from "node:net";
import type { TlsOptions } from "node:tls";
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import {
  GuardedFetch,
  type GuardedOutcome,
  type GuardedRequest,
} from "../../src/lib/guarded-fetch/guarded-fetch.ts";
import { newAuthority } from "../support/certificates/authority.ts";
import { type RawReceiver, startRawTcp, startRawTls } from "../support/raw-receiver.ts";
import { startTlsReceiver } from "../support/tls-receiver.ts";
import { drip, flood, nothing, OK, SHORT_MS, TRICKS } from "./tricks.ts";

/** Where an end by time must not come first. */
const LONG_MS = 30_000;
/** For what a busy machine may add. Without its bound none of these exchanges would ever end. */
const SLACK_MS = 15_000;

const authority = newAuthority();
const good = authority.issue(["127.0.0.1", "localhost"]);
const guarded = new GuardedFetch({
  allowCidrs: ["127.0.0.0/8"],
  extraCa: authority.caPem,
  resolve: async () => ["127.0.0.1"],
});

const post = (port: number, timeoutMs: number, more: Partial<GuardedRequest> = {}): Promise<GuardedOutcome> =>
  guarded.send({
    url: `https://127.0.0.1:${String(port)}/hook`,
    method: "POST",
    headers: { "content-type": "application/json" },
    body: "{}",
    timeoutMs,
    ...more,
  });

const shown = (outcome: GuardedOutcome): string =>
  outcome.kind === "failed" ? outcome.reason : `answered ${String(outcome.httpStatus)}`;

describe("receivers that play tricks", () => {
  const running = new Set<RawReceiver>();
  afterEach(async () => {
    await Promise.all([...running].map((receiver) => receiver.close()));
    running.clear();
  });
  const kept = async (starting: Promise<RawReceiver>): Promise<RawReceiver> => {
    const receiver = await starting;
    running.add(receiver);
    return receiver;
  };
  const tls = (behave: (socket: Socket) => void, options: TlsOptions = good) =>
    kept(startRawTls(options, behave));
  const tcp = (behave: (socket: Socket) => void) => kept(startRawTcp(behave));

  for (const { name, behave, ends, timeoutMs = LONG_MS } of TRICKS)
    it(`${name}: ended in time, "${ends}"`, async () => {
      const receiver = await tls(behave);
      const outcome = await post(receiver.port, timeoutMs);
      expect(shown(outcome)).to.equal(ends);
      const bound = ends === "timed out" ? timeoutMs : 1_000;
      expect(outcome.elapsedMs).to.be.below(bound + SLACK_MS);
      if (ends === "timed out") expect(outcome.elapsedMs).to.be.at.least(timeoutMs - 5);
      await receiver.idle();
    });

  it("a body is read for a second at most, and not beyond the deadline", async () => {
    const receiver = await tls((socket) => {
      socket.write(`${OK}content-length: 1000000\r\n\r\nabc`);
      drip(socket, () => "d");
    });
    const second = await post(receiver.port, LONG_MS);
    expect(second.elapsedMs).to.be.within(950, 1_000 + SLACK_MS);
    expect(second)
      .to.have.property("bodyExcerpt")
      .that.matches(/^abcd+$/);
    const deadline = await post(receiver.port, 600);
    if (deadline.kind === "answered") expect(deadline.bodyExcerpt).to.match(/^abcd*$/);
    expect(deadline.elapsedMs).to.be.below(900 + SLACK_MS);
  });

  it("of floods only a little is taken, and memory does not grow", async () => {
    const ROUNDS = 30;
    const receiver = await tls((socket) => {
      socket.write(`${OK}\r\n`);
      flood(socket, "a".repeat(64 * 1_024));
    });
    const before = usedBytes();
    for (let round = 0; round < ROUNDS; round += 1) {
      const outcome = await post(receiver.port, LONG_MS);
      expect(outcome).to.have.property("bodyExcerpt", "a".repeat(1_024));
    }
    await receiver.idle();
    // What the system's buffers of both sides hold is sent too, but nothing near what could be.
    expect(receiver.bytesWritten / ROUNDS).to.be.below(16 * 1_024 ** 2);
    expect(usedBytes() - before).to.be.below(128 * 1_024 ** 2);
  });

  it("a compressed body is not unpacked, however large it would be", async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 1_024 ** 2));
    const receiver = await startTlsReceiver((_request, response) => {
      response.writeHead(200, { "content-encoding": "gzip", "content-type": "text/plain" }).end(bomb);
    });
    const outcome = await trusting(receiver.caPem).send(requestTo(receiver.url));
    expect(outcome).to.deep.include({ kind: "answered", httpStatus: 200, bodyExcerpt: "" });
    expect(receiver.requests[0]?.headers["accept-encoding"]).to.equal("identity");
    await receiver.close();
  });

  it("a redirect is the answer, and is not followed", async () => {
    const target = await startTlsReceiver();
    const receiver = await startTlsReceiver();
    const fetching = trusting(receiver.caPem + target.caPem);
    for (const status of [301, 302, 303, 307, 308]) {
      receiver.respondWith(
        (_request, response) => void response.writeHead(status, { location: `${target.url}/stolen` }).end(),
      );
      expect(shown(await fetching.send(requestTo(receiver.url)))).to.equal(`answered ${String(status)}`);
    }
    expect(target.connections).to.equal(0);
    await Promise.all([target.close(), receiver.close()]);
  });

  it("what is read of a body is text without controls and cut characters", async () => {
    const receiver = await startTlsReceiver();
    const fetching = trusting(receiver.caPem);
    const excerptOf = async (body: string | Buffer): Promise<unknown> => {
      receiver.respondWith((_request, response) => void response.writeHead(500).end(body));
      return { ...(await fetching.send(requestTo(receiver.url))) };
    };
    const rows: readonly (readonly [string | Buffer, string])[] = [
      ["a\u0000b\r\nc\u001b[31md\u202ee", "a b  c [31md e"],
      [Buffer.from([0x61, 0xff, 0xc3]), "a\ufffd"],
      ["ä".repeat(2_000), "ä".repeat(1_024)],
      [`a${"😀".repeat(2_000)}`, `a${"😀".repeat(511)}`],
      ["", ""],
    ];
    for (const [body, excerpt] of rows)
      expect(await excerptOf(body)).to.deep.include({ httpStatus: 500, bodyExcerpt: excerpt });
    await receiver.close();
  });

  it("a certificate that is not its own, not known or no longer good is refused", async () => {
    const stranger = newAuthority().issue(["127.0.0.1"]);
    const rows: readonly (readonly [TlsOptions, string])[] = [
      [stranger, "UNABLE_TO_VERIFY_LEAF_SIGNATURE"],
      [authority.issue(["hooks.acme.com", "127.0.0.2"]), "ERR_TLS_CERT_ALTNAME_INVALID"],
      [authority.issue(["127.0.0.1"], "expired"), "CERT_HAS_EXPIRED"],
    ];
    for (const [identity, code] of rows) {
      let requests = 0;
      const receiver = await tls(() => (requests += 1), identity);
      const outcome = await post(receiver.port, LONG_MS);
      expect(shown(outcome)).to.equal(`its certificate is not valid: ${code}`);
      expect(requests).to.equal(0);
    }
  });

  it("a name must be in the certificate, and is what the receiver is asked for", async () => {
    const asked: string[] = [];
    const receiver = await tls((socket) => socket.end(`${OK}\r\n`), {
      ...authority.issue(["hooks.acme.com"]),
      SNICallback: (name, callback) => {
        asked.push(name);
        callback(null);
      },
    });
    const to = (host: string) =>
      post(receiver.port, LONG_MS, { url: `https://${host}:${String(receiver.port)}/` });
    expect(shown(await to("hooks.acme.com"))).to.equal("answered 200");
    expect(shown(await to("hooks.other.com"))).to.match(/ERR_TLS_CERT_ALTNAME_INVALID$/);
    expect(asked).to.deep.equal(["hooks.acme.com", "hooks.other.com"]);
  });

  it("verification cannot be turned off by the environment", async () => {
    const receiver = await tls(nothing, newAuthority().issue(["127.0.0.1"]));
    // Node warns of the variable even where it has no effect.
    const warning = Object.getOwnPropertyDescriptor(process, "emitWarning") ?? {};
    Object.defineProperty(process, "emitWarning", { ...warning, value: () => {} });
    process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
    try {
      expect(shown(await post(receiver.port, LONG_MS))).to.match(/^its certificate is not valid/);
    } finally {
      delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
      Object.defineProperty(process, "emitWarning", warning);
    }
  });

  it("what speaks no TLS, or none of today, fails in the handshake", async () => {
    const plain = await tcp((socket) => socket.end(`${OK}\r\nhello`));
    expect(shown(await post(plain.port, LONG_MS))).to.equal("the TLS handshake failed");
    const old = { ...good, minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "ALL:@SECLEVEL=0" } as const;
    const aged = await tls(nothing, old);
    expect(shown(await post(aged.port, LONG_MS))).to.equal("the TLS handshake failed");
    const asking = await tls(nothing, { ...good, requestCert: true, rejectUnauthorized: true });
    expect(shown(await post(asking.port, LONG_MS))).to.be.oneOf([
      "the TLS handshake failed",
      "the connection was cut",
    ]);
  });

  it("a port that is closed, cuts at once or stays silent is told apart", async () => {
    const cutting = await tcp((socket) => socket.destroy());
    expect(shown(await post(cutting.port, LONG_MS))).to.equal("the connection was cut");
    const silent = await tcp(nothing);
    expect(shown(await post(silent.port, SHORT_MS))).to.equal("timed out");
    const gone = await startRawTcp(nothing);
    await gone.close();
    expect(shown(await post(gone.port, LONG_MS))).to.equal("the connection was refused");
  });

  it("the time for a name's look-up counts", async () => {
    const slow = new GuardedFetch({ allowCidrs: [], extraCa: null, resolve: () => new Promise(() => {}) });
    const outcome = await slow.send({ ...requestTo("https://hooks.acme.com"), timeoutMs: SHORT_MS });
    expect(shown(outcome)).to.equal("timed out");
    expect(outcome.elapsedMs).to.be.within(SHORT_MS - 5, SHORT_MS + SLACK_MS);
  });

  it("each request has a connection of its own, and headers that it decides itself", async () => {
    const receiver = await startTlsReceiver();
    const fetching = trusting(receiver.caPem);
    const headers = {
      Host: "internal",
      Connection: "keep-alive",
      "Content-Length": "9",
      Expect: "x",
      "x-own": "1",
    };
    for (let count = 0; count < 2; count += 1)
      await fetching.send({ ...requestTo(`${receiver.url}/a?b=c`), headers, body: "é" });
    expect(receiver.connections).to.equal(2);
    const [first] = receiver.requests;
    expect(first).to.deep.include({ method: "POST", path: "/a?b=c" });
    expect(first?.body.toString()).to.equal("é");
    expect(first?.headers).to.deep.equal({
      host: `127.0.0.1:${String(receiver.port)}`,
      connection: "close",
      "content-length": "2",
      "accept-encoding": "identity",
      "x-own": "1",
    });
    await receiver.close();
  });

  it("no proxy of the environment is used", async () => {
    let proxied = 0;
    const proxy = await tcp((socket) => {
      proxied += 1;
      socket.destroy();
    });
    const names = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"];
    const receiver = await startTlsReceiver();
    for (const name of names) process.env[name] = `http://127.0.0.1:${String(proxy.port)}`;
    try {
      expect(shown(await trusting(receiver.caPem).send(requestTo(receiver.url)))).to.equal("answered 204");
    } finally {
      for (const name of names) delete process.env[name];
    }
    expect(proxied).to.equal(0);
    await receiver.close();
  });

  it("what cannot be sent fails and does not throw", async () => {
    const receiver = await tls(nothing);
    const outcome = await post(receiver.port, LONG_MS, { headers: { "x-bad": "a\r\nb: c" } });
    expect(shown(outcome)).to.equal("the request could not be sent");
    await receiver.idle();
  });

  it("closing ends what is under way, and nothing is sent afterwards", async () => {
    const stopping = new GuardedFetch({ allowCidrs: ["127.0.0.0/8"], extraCa: authority.caPem });
    const events = new EventEmitter();
    const receiver = await tls(() => void events.emit("request"));
    const to = requestTo(`https://127.0.0.1:${String(receiver.port)}/`);
    const got = once(events, "request");
    const under = stopping.send(to);
    await got;
    stopping.close();
    expect(shown(await under)).to.equal("sending was stopped");
    expect(shown(await stopping.send(to))).to.equal("sending was stopped");
    await receiver.idle();
  });
});

const usedBytes = (): number => {
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
};

const trusting = (extraCa: string): GuardedFetch =>
  new GuardedFetch({ allowCidrs: ["127.0.0.0/8"], extraCa });

const requestTo = (url: string): GuardedRequest => ({
  url,
  method: "POST",
  headers: {},
  body: "{}",
  timeoutMs: LONG_MS,
});
