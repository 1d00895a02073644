import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { expect } from "chai";
import { z } from "zod";
import { PASSWORD_COST } from "../../src/identity/passwords.ts";
import { timed } from "../support/in-time.ts";
import { startTestService, type TestOrganization, type TestService } from "../support/service.ts";
import { shortOrSoak } from "../support/soak.ts";
import { tally, times } from "../support/world.ts";

/** Some more than find a place. */
const SIGN_INS = shortOrSoak(144, 256);
/** Nineteen of twenty probes are answered within this; the slowest, which some other pause may have met, within that. */
const PROBED_MS = 100;
const SLOWEST_MS = 500;
const PAUSE_MS = 25;

const answersSchema = z.array(
  z.object({ status: z.number(), error: z.string().nullable(), retryAfter: z.string().nullable() }),
);

/** In a thread of its own: what the callers cost is not the service's, which runs in this one. */
const CALLERS = `
  const { parentPort, workerData: { baseUrl, addresses } } = require("node:worker_threads");
  const call = async (address, index) => {
    const response = await fetch(baseUrl + "/v1/auth/sign-in", {
      method: "POST",
      headers: { "content-type": "application/json", "x-forwarded-for": address },
      body: JSON.stringify({ email: "nobody-" + index + "@example.com", password: "wrong horse battery" }),
    });
    const { error = null } = await response.json();
    return { status: response.status, error, retryAfter: response.headers.get("retry-after") };
  };
  Promise.all(addresses.map(call)).then((answers) => parentPort.postMessage(answers));
`;

async function flooding(
  baseUrl: string,
  addressOf: (index: number) => string,
): Promise<z.infer<typeof answersSchema>> {
  const addresses = times(SIGN_INS, addressOf);
  const worker = new Worker(CALLERS, { eval: true, workerData: { baseUrl, addresses } });
  const [answers] = await once(worker, "message");
  await worker.terminate();
  return answersSchema.parse(answers);
}

const ownAddress = (index: number): string => `127.0.${index >> 7}.${(index & 127) + 1}`;

describe("a flood of sign-ins", () => {
  let service: TestService;
  let user: TestOrganization;
  before(async () => {
    service = await startTestService({ worker: false, passwordCost: PASSWORD_COST });
    user = await service.organization();
  });
  after(() => service.stop());

  const signIn = () => {
    const { email, password } = user;
    return service.api.call("POST", "/v1/auth/sign-in", { body: { email, password } });
  };

  it("from as many addresses: /healthz is answered, and who finds no place comes again", async () => {
    const flood = { isOver: false };
    const answers = flooding(service.baseUrl, ownAddress).finally(() => (flood.isOver = true));
    const probes: number[] = [];
    while (!flood.isOver) {
      const { ownMs, value } = await timed(service.api.call("GET", "/healthz"));
      expect(value.status).to.equal(200);
      probes.push(ownMs);
      await sleep(PAUSE_MS);
    }
    const statuses = tally((await answers).map(({ status }) => status));
    expect(Object.keys(statuses)).to.have.members(["401", "503"]);
    for (const { error, retryAfter, status } of await answers) {
      if (status !== 503) continue;
      expect(error).to.equal("SERVICE_UNAVAILABLE");
      expect(Number(retryAfter)).to.be.within(1, 60);
    }
    expect(probes.length).to.be.greaterThan(1);
    const slowest = probes.toSorted((one, other) => other - one);
    const told = `${JSON.stringify(statuses)}, ${slowest.slice(0, 5).map(Math.round).join(" ")} ms`;
    expect(slowest[0], told).to.be.below(SLOWEST_MS);
    expect(slowest[Math.floor(probes.length / 20)], told).to.be.below(PROBED_MS);
  });

  it("from one network of IPv6: it has its share of the places, and others find theirs", async () => {
    const crowd = flooding(service.baseUrl, (index) => `2001:db8:77:${(index + 1).toString(16)}::1`);
    const own = signIn();
    // Its share is a part of the places.
    expect((await crowd).map(({ status }) => status)).to.include(503);
    expect((await own).status).to.equal(200);
  });

  it("who sends a sign-in's head and no body, 40 times, keeps no other user out", async () => {
    const { hostname, port } = new URL(service.baseUrl);
    const sockets = await Promise.all(
      times(40, async (index) => {
        const socket = connect(Number(port), hostname);
        const head = [
          "POST /v1/auth/sign-in HTTP/1.1",
          `Host: ${hostname}`,
          `X-Forwarded-For: 127.1.0.${index + 1}`,
          "Content-Type: application/json",
          "Expect: 100-continue",
          "Content-Length: 100",
        ];
        socket.write(`${head.join("\r\n")}\r\n\r\n`);
        // 100 Continue: its head was read, and its body is waited for.
        await once(socket, "data");
        return socket;
      }),
    );
    try {
      expect((await signIn()).status).to.equal(200);
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  });
});
