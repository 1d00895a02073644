import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { inTime } from "../support/in-time.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { cardPayment, newWorld, type TestAgent, times, until, type World } from "../support/world.ts";

/** Longer than decisions may take before payments are shed. */
const OVERLOAD_MS = 1_100;

describe("payments while Temporal decides slowly", () => {
  let service: TestService;
  let world: World;
  let [slow, other]: TestAgent[] = [];
  let held: Promise<void> = Promise.resolve();
  let release: (() => void) | null = null;
  let onHeld: (() => void) | null = null;

  before(async () => {
    service = await startTestService();
    world = await newWorld(service);
    [slow, other] = [await world.agent(), await world.agent()];
    for (const agent of [slow, other]) await agent.pay();
    const { temporal } = service.connections;
    const plain = temporal.withDeadline.bind(temporal);
    // Every call to Temporal waits while the test holds them.
    temporal.withDeadline = async (deadline, call) => {
      onHeld?.();
      await held;
      return plain(deadline, call);
    };
  });
  after(() => service.stop());

  /** Holds all further calls; what it returns resolves with the first of them. */
  const hold = (): Promise<void> => {
    held = new Promise((resolve) => (release = resolve));
    return new Promise((resolve) => (onHeld = resolve));
  };
  afterEach(() => release?.());

  const read = async (sample: string): Promise<number> => {
    const text = await (await fetch(`${service.baseUrl}/metrics`)).text();
    const line = text.split("\n").find((each) => each.startsWith(`spending_control_${sample} `));
    return Number(line?.split(" ")[1] ?? Number.NaN);
  };
  const dropped = async () => (await read('shed_payments_total{reason="caller_gone"}')) || 0;
  const paying = (agent: TestAgent | undefined, body = cardPayment(), signal?: AbortSignal) =>
    fetch(`${service.baseUrl}/v1/payments`, {
      method: "POST",
      headers: { authorization: `Bearer ${agent?.key ?? ""}`, "content-type": "application/json" },
      body: JSON.stringify(body),
      ...(signal === undefined ? {} : { signal }),
    });

  it("are 503 at the door and begin nothing, while a pause is taken; then they are made again", async () => {
    const isHeld = hold();
    const inFlight = paying(slow);
    await isHeld;
    // Some may wait all the same, to be decided as soon as it goes on.
    const waiting = times(8, () => paying(slow));
    await until("they wait", async () =>
      (await read('queue_length{queue="ledger_commands"}')) === waiting.length ? true : null,
    );
    await sleep(OVERLOAD_MS);
    const body = cardPayment();
    const shed = await inTime("what is shed", paying(other, body), 500);
    expect([shed.status, shed.headers.get("retry-after")]).to.deep.equal([503, "1"]);
    expect(await read('shed_payments_total{reason="overload"}')).to.equal(1);
    const pausing = world.api.okAtOnce("pauseAgent", 200, { token: world.token, id: slow?.id ?? "" });
    release?.();
    await Promise.all([inFlight, pausing, ...waiting]);
    // 201: the shed request had begun nothing.
    expect((await paying(other, body)).status).to.equal(201);
  });

  it("whose callers have left before their turn are not begun", async () => {
    const isHeld = hold();
    const inFlight = paying(other);
    await isHeld;
    // On a busy machine, deadlines of the calls above may have passed, too.
    const droppedBefore = await dropped();
    const caller = new AbortController();
    const body = cardPayment();
    const left = paying(other, body, caller.signal).catch(() => null);
    await until("it waits", async () =>
      (await read('queue_length{queue="ledger_commands"}')) >= 1 ? true : null,
    );
    caller.abort();
    await left;
    await until("its connection is closed", async () => {
      const requests = await (await fetch(`${service.baseUrl}/metrics`)).text();
      return /requests_total\{surface="rest",operation="createPayment",status="aborted"\} 1/.test(requests)
        ? true
        : null;
    });
    release?.();
    expect((await inFlight).status).to.equal(201);
    await until("it is dropped", async () => ((await dropped()) > droppedBefore ? true : null));
    expect((await paying(other, body)).status, "nothing was begun").to.equal(201);
  });
});
