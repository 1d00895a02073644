import { z } from "zod";
import { operations } from "../../src/contract/registry.ts";
import type { CardNetwork } from "../../src/engines/card-network/network.ts";
import { startCardNetwork } from "../../src/engines/card-network/server.ts";
import type { Card } from "../../src/engines/card-network/shapes.ts";
import { TotpCodes } from "../../test/support/totp.ts";
import { cpuEach, type OneService, ms, ofTarget, onOneService, payAs, say } from "./standalone.ts";
import { percentile } from "./statistics.ts";
import { callTo, postTo } from "./systems/payments-agents.ts";
import { ORDER } from "./systems/system.ts";

/**
 * Authorizations that a card network asks for, beside payments: `node dist/lab/bench/authorizations.js`. The network is
 * the simulated one, in this process. Times are the caller's, from its request to the answer, unless they are said to
 * be the service's own. Payments and authorizations each have connections of their own, open before they are measured.
 */
const CONNECTIONS = 50;
/** Cards are made ready by so few at once that nothing is shed. */
const ARMING = 8;
const SAMPLES = 500;
/** Before each further round, the work that the last one left behind is finished. */
const ROUNDS = 2;
const WARM_UP = 100;
const AT_ONCE = 1_000;
const TARGETS = { ratio: 1.2, p99Ms: 500, answeredMs: 2_000 };
const MERCHANT = {
  name: ORDER.merchant,
  category: "taxicabs_limousines",
  category_code: "4121",
  network_id: "1",
  country: "US",
};
const KEY = "rk_test_of_the_bench";
const SECRET = "whsec_of_the_bench";
const RAIL = "/v1/organization/rails/simulator";
/** Answered by the service, not by the network in its place. */
const ANSWERED: ReadonlySet<string> = new Set(["webhook_approved", "webhook_declined"]);

interface OwnTimes {
  readonly authorization: readonly number[];
  readonly payment: readonly number[];
}

const armed = z.object({ transaction: z.object({ id: z.string(), stage: z.literal("armed") }) });
const running = await startCardNetwork({ port: 0, folder: null, seed: 1 });
await onOneService(
  "authorizations",
  { CARD_NETWORK_URL: running.url },
  measure,
  "processes/authorizations.ts",
);

async function measure(service: OneService): Promise<void> {
  const { agents, ask, cpu, port, undo } = service;
  undo.add(() => running.close());
  const payer = (number: number) => agents[number % agents.length] ?? agents[0];
  const pay = async (number: number): Promise<unknown> => {
    const agent = payer(number);
    if (agent === undefined) throw new Error("there is no agent");
    for (;;) {
      try {
        return await payAs(port, agent, ORDER);
      } catch (error) {
        // A busy machine sheds payments.
        if (!String(error).includes(": 503 ")) throw error;
      }
    }
  };
  const account = running.accountOf(KEY);
  const { network } = account;
  const ready: string[] = [];
  const arm = async (number: number) => {
    ready.push(armed.parse(await pay(number)).transaction.id);
  };
  const cards = new Map<string | undefined, string>();
  const makeReady = async (count: number): Promise<void> => {
    await timesOf(count, arm, ARMING);
    await account.settled();
    for (const { id, metadata } of network.store.all<Card>("issuing.card"))
      cards.set(metadata["transaction"], id);
  };
  const reasons: string[] = [];
  const granted: string[] = [];
  const authorize = async (): Promise<void> => {
    const card = cards.get(ready.pop()) ?? "";
    const { id, request_history } = await network.authorize(card, ORDER.amountCents, MERCHANT);
    const reason = request_history.at(-1)?.reason ?? "none";
    reasons.push(reason);
    if (reason === "webhook_approved") granted.push(id);
  };
  /** Charges what was granted, which ends its payments: a project has a bound for those that are open. */
  const charge = async (): Promise<void> => {
    for (const id of granted.splice(0)) network.capture(id, null, true);
    await account.settled();
  };

  const probe = () => fetch(`http://localhost:${String(port)}/healthz`).then((answer) => answer.text());
  /**
   * Opens the network's connections. Node accepts one connection in each turn of its event loop, so a request that
   * opens one waits for the kernel rather than for the service.
   */
  const open = (connections: number): Promise<unknown> => timesOf(connections, probe, connections);

  await timesOf(WARM_UP, pay);
  await ask();
  const beforePayments = await cpu();
  const payments: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) payments.push(...(await timesOf(SAMPLES, pay)));
  say(`processor time of a payment: ${cpuEach(beforePayments, await cpu(), payments.length)}`);

  const ownPayments = [...(await ask<OwnTimes>()).payment];

  await connect(service, network);
  const authorizations: number[] = [];
  const own: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    await makeReady(WARM_UP + SAMPLES);
    await timesOf(WARM_UP, authorize);
    await account.settled();
    await open(CONNECTIONS);
    await ask();
    const before = await cpu();
    authorizations.push(...(await timesOf(SAMPLES, authorize)));
    const answered = await cpu();
    own.push(...(await ask<OwnTimes>()).authorization);
    await account.settled();
    say(`of an authorization to its answer: ${cpuEach(before, answered, SAMPLES)}`);
    say(`with its event, read and booked: ${cpuEach(before, await cpu(), SAMPLES)}`);
    await charge();
  }

  for (const times of [payments, authorizations, own, ownPayments]) times.sort((one, other) => one - other);
  const [paying, asking] = [percentile(payments, 0.99), percentile(authorizations, 0.99)];
  say(
    `p50 at ${CONNECTIONS} at once: a payment ${ms(percentile(payments, 0.5))}, an authorization ${ms(percentile(authorizations, 0.5))}`,
  );
  say(
    `p99: a payment ${ms(paying)}, an authorization ${ms(asking)}, in ms ${ofTarget(asking, TARGETS.p99Ms)}`,
  );
  say(`p99 of an authorization to that of a payment: ${ofTarget(asking / paying, TARGETS.ratio)}`);

  const [ownPaying, ownAsking] = [percentile(ownPayments, 0.99), percentile(own, 0.99)];
  say(
    `by the service's own clock: p50 of a payment ${ms(percentile(ownPayments, 0.5))}, of an authorization ${ms(percentile(own, 0.5))}; ` +
      `p99 ${ms(ownPaying)} and ${ms(ownAsking)}, in ms ${ofTarget(ownAsking, TARGETS.p99Ms)}, of a payment's ${ofTarget(ownAsking / ownPaying, TARGETS.ratio)}`,
  );

  await makeReady(AT_ONCE);
  // The network shares the machine, and would count its own delay.
  network.configure({ answerTimeoutMs: 10_000 });
  await open(AT_ONCE);
  reasons.length = 0;
  await ask();
  const burst = await timesOf(AT_ONCE, authorize, AT_ONCE);
  const burstOwn = (await ask<OwnTimes>()).authorization;
  const byService = reasons.filter((reason) => ANSWERED.has(reason)).length;
  const approved = reasons.filter((reason) => reason === "webhook_approved").length;
  say(
    `${AT_ONCE} at once: ${byService} answered, ${approved} of them approved; the others are declined; the last of ` +
      `${burstOwn.length} in ms by the service's own clock ${ofTarget(Math.max(...burstOwn), TARGETS.answeredMs)}, ` +
      `by the network's ${ms(burst.at(-1) ?? 0)}`,
  );
}

/** Durations in ms, sorted, of so many calls, of which `connections` are under way. */
async function timesOf(
  count: number,
  call: (number: number) => Promise<unknown>,
  connections = CONNECTIONS,
): Promise<readonly number[]> {
  const times: number[] = [];
  let next = 0;
  const client = async (): Promise<void> => {
    while (next < count) {
      const number = next;
      next += 1;
      const began = performance.now();
      await call(number);
      times.push(performance.now() - began);
    }
  };
  await Promise.all(Array.from({ length: connections }, client));
  return times.toSorted((one, other) => one - other);
}

async function connect({ port, session }: OneService, network: CardNetwork): Promise<void> {
  const { connectCardIssuer, enrollTotp } = operations;
  const { secret } = enrollTotp.output.parse(await postTo(port, "/v1/auth/totp", {}, session));
  const codes = new TotpCodes(secret);
  await postTo(port, "/v1/auth/totp/confirm", { code: await codes.next() }, session);
  const proof = { method: "totp", code: await codes.next() };
  await postTo(port, "/v1/auth/step-up", proof, session);
  const put = (body: object) => callTo(port, "PUT", RAIL, body, session);
  const { connection } = connectCardIssuer.output.parse(await put({ apiKey: KEY }));
  // Events have other connections: a `fetch` shares those of one host, and each event holds one until it is read.
  const authorizationUrl = connection.authorizationUrl.replace("127.0.0.1", "localhost");
  network.configure({ authorizationUrl, authorizationSecret: SECRET, standsIn: "decline" });
  network.configure({ fundedCents: 100 * ORDER.amountCents * (WARM_UP + SAMPLES + AT_ONCE) });
  await put({ authorizationSecret: SECRET });
}
