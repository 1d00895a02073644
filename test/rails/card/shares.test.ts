import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import express from "express";
import type { StripeBilling } from "../../../src/billing/stripe-billing.ts";
import type { Metrics } from "../../../src/metrics/metrics.ts";
import { createLogger } from "../../../src/lib/logger.ts";
import type { Admission } from "../../../server/http/admission.ts";
import { requestContexts } from "../../../server/http/request-context.ts";
import { signedMessagesRouter } from "../../../server/http/signed-messages.ts";
import { CARD_MESSAGES_PER_MINUTE } from "../../../src/contract/rate-classes.ts";
import { type CardMessageKind, Limits, type LimitsDependencies } from "../../../src/limits/limits.ts";
import type { CardIssuer, Incoming } from "../../../src/payments/card-issuer.ts";
import type { CardConnection } from "../../../src/rails/card/connections.ts";
import { CardMessages, type CardMessagesDependencies } from "../../../src/rails/card/inbound.ts";
import { FixedClock } from "../../limits/support.ts";

const raw = { headers: {}, body: Buffer.from("{}") };
const request: Incoming = {
  kind: "request",
  cardRef: "ic_none",
  authorization: "iauth_1",
  position: 0,
  amountMc: 1,
  currency: "USD",
  merchant: { name: "SHOP", category: null, networkId: null, country: null },
};
const hint: Incoming = { kind: "hint", eventId: "evt_1", cardRef: "ic_none" };
const deposit: Incoming = { kind: "deposit", eventId: "evt_2", depositId: "tu_1", amountCents: 1 };

/** Messages of a service with two connections, whose issuer's messages are all genuine. */
function scene() {
  const clock = new FixedClock();
  const work = { read: 0, stored: 0, hits: 0 };
  let next: Incoming = hint;
  const issuer = {
    read: () => next,
    answer: (_request: unknown, refusal: string | null) => ({ headers: {}, body: refusal ?? "approved" }),
  } as unknown as CardIssuer;
  const limits = new Limits({
    clock: clock.read,
    onHit: () => (work.hits += 1),
  } as unknown as LimitsDependencies);
  const messages = new CardMessages({
    clock: clock.read,
    limits,
    cards: { byRef: () => Promise.resolve(((work.read += 1), null)) },
    connections: {
      byId: (id: string) =>
        Promise.resolve({ id, organizationId: id, issuer, record: {} } as unknown as CardConnection),
      note: () => Promise.resolve(),
    },
    journal: { organizationEvent: () => Promise.resolve(void (work.stored += 1)) },
    onFailed: () => undefined,
  } as unknown as CardMessagesDependencies);
  const send = async (message: Incoming, connection = "rail_flooding") => {
    next = message;
    const received =
      message.kind === "request"
        ? await messages.authorization(connection, raw, performance.now())
        : await messages.event(connection, raw);
    return received.kind === "answered" ? received.answer.body : received.kind;
  };
  const exhaust = async (kind: CardMessageKind, connection = "rail_flooding") => {
    for (let sent = 0; sent < CARD_MESSAGES_PER_MINUTE[kind]; sent += 1)
      await limits.ofCardMessage(kind, connection);
  };
  return { clock, exhaust, messages, send, work };
}

describe("a card connection's share of messages", () => {
  it("above it an authorization is declined, never left to the network, and nothing is read", async () => {
    const { clock, exhaust, send, work } = scene();
    expect(await send(request)).to.equal("CLOSED");
    await exhaust("authorizations");
    expect(await send(request)).to.equal("RATE_LIMITED");
    expect(work).to.include({ read: 1 });
    expect(await send(request, "rail_other")).to.equal("CLOSED");
    clock.nextMinute();
    expect(await send(request)).to.equal("CLOSED");
  });

  it("above it an event is refused for the issuer to repeat, and neither read nor stored", async () => {
    const { clock, exhaust, send, work } = scene();
    await exhaust("events");
    await exhaust("deposits");
    expect(await send(hint)).to.equal("over");
    expect(await send(deposit)).to.equal("over");
    expect(work).to.deep.include({ read: 0, stored: 0 });
    expect(await send(request), "events take nothing of the authorizations' share").to.equal("CLOSED");
    expect(await send(deposit, "rail_other")).to.equal("done");
    clock.nextMinute();
    expect([await send(hint), await send(deposit)]).to.deep.equal(["done", "done"]);
  });

  it("a refused event is 429 with the time after which its issuer repeats it", async () => {
    const { exhaust, messages } = scene();
    const connection = `rail_${"0".repeat(26)}`;
    const logger = createLogger({ level: "silent", file: null });
    const admission = { showUncounted: () => undefined } as unknown as Admission;
    const metrics = { requestEnded: () => undefined } as unknown as Metrics;
    const router = signedMessagesRouter(messages, {} as StripeBilling, admission, logger);
    const server = express().use(requestContexts(logger, metrics), router).listen(0, "127.0.0.1");
    await once(server, "listening");
    try {
      const { port } = server.address() as AddressInfo;
      const url = `http://127.0.0.1:${port}/v1/rails/${connection}/events`;
      for (const expected of [200, 429]) {
        if (expected === 429) await exhaust("events", connection);
        const { headers, status } = await fetch(url, { method: "POST", body: "{}" });
        expect(status).to.equal(expected);
        expect(headers.has("retry-after")).to.equal(expected === 429);
      }
    } finally {
      server.close();
    }
  });
});
