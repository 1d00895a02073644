import { defaultPayloadConverter, type Payload, type SerializationContext } from "@temporalio/common";
import proto from "@temporalio/proto";
import { expect } from "chai";
import { assert, asyncProperty, jsonValue, string } from "fast-check";
import type { PayloadRefusal } from "../../src/messages/envelope.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";
import { SealingCodec } from "../../src/temporal/payload-codec.ts";
import { payloadKeysOf } from "../../src/temporal/payload-keys.ts";
import { TEST_MASTER_KEY } from "../support/payloads.ts";
import { seed } from "../support/seed.ts";

const first = MasterKey.parse(TEST_MASTER_KEY, "a test");
const SECOND = "another-master-key-of-these-tests-1234567890";
const second = MasterKey.parse(SECOND, "a test");
const rotated = MasterKey.parseAll(`${SECOND} ${TEST_MASTER_KEY}`, "a test");

const workflow = (workflowId: string): SerializationContext => ({
  type: "workflow",
  namespace: "default",
  workflowId,
});
const activity = (activityId: string): SerializationContext => ({
  type: "activity",
  namespace: "default",
  workflowId: "ledger/1",
  activityId,
  isLocal: false,
});
const HERE = workflow("ledger/1");
const SECRET = "Flowers for Ada";
const payloadOf = (value: unknown): Payload => defaultPayloadConverter.toPayload(value);

function codecOf(isEncrypted: boolean, keys = payloadKeysOf(first)) {
  const refused: PayloadRefusal[] = [];
  const codec = new SealingCodec({ keys, isEncrypted, onRefused: (_place, why) => refused.push(why) });
  return { codec, refused };
}

async function sealed(value: unknown, isEncrypted: boolean, context = HERE): Promise<Payload> {
  const [payload] = await codecOf(isEncrypted).codec.encode([payloadOf(value)], context);
  if (payload === undefined) throw new Error("one payload becomes one");
  return payload;
}

/** Reads a payload at a place, and returns its value and the reasons of refusals. */
async function read(payload: Payload, { context = HERE, keys = payloadKeysOf(first) } = {}) {
  const { codec, refused } = codecOf(true, keys);
  const [opened] = await codec.decode([payload], context);
  return { value: defaultPayloadConverter.fromPayload<unknown>(opened ?? {}), refused };
}

async function expectRefused(payload: Payload, why: PayloadRefusal, at = {}): Promise<void> {
  expect(await read(payload, at)).to.deep.equal({ value: { refused: why }, refused: [why] });
}

const withData = (payload: Payload, alter: (data: Buffer) => void): Payload => {
  const data = Buffer.from(payload.data ?? []);
  alter(data);
  return { ...payload, data };
};

for (const [name, isEncrypted] of [
  ["encrypted", true],
  ["authenticated", false],
] as const) {
  describe(`payloads in Temporal, ${name}`, () => {
    it(`whatever is sealed opens as it was (seed ${String(seed)})`, () =>
      assert(
        asyncProperty(jsonValue(), string(), async (value, workflowId) => {
          const context = workflow(workflowId);
          const payload = await sealed(value, isEncrypted, context);
          const asRead = JSON.parse(JSON.stringify(value)) as unknown;
          expect(await read(payload, { context })).to.deep.equal({ value: asRead, refused: [] });
        }),
        { seed, numRuns: 200 },
      ));

    it("nothing, bytes and what is large and compressed open as they were", async () => {
      const large = { text: "x".repeat(100_000) };
      const payload = await sealed(large, isEncrypted);
      expect(payload.data?.byteLength).to.be.below(2_000);
      expect((await read(payload)).value).to.deep.equal(large);
      expect((await read(await sealed(undefined, isEncrypted))).value).to.equal(undefined);
      const [ofMessage] = await codecOf(isEncrypted).codec.encode(
        [proto.temporal.api.common.v1.Payload.fromObject(payloadOf(undefined))],
        HERE,
      );
      expect((await read(ofMessage ?? {})).value).to.equal(undefined);
      const bytes = new Uint8Array([1, 2, 3]);
      expect((await read(await sealed(bytes, isEncrypted))).value).to.deep.equal(bytes);
    });

    it(`a changed bit anywhere in data or metadata is refused (seed ${String(seed)})`, async () => {
      const payload = await sealed({ text: SECRET }, isEncrypted);
      const size = payload.data?.byteLength ?? 0;
      for (let index = 0; index < size; index += 1) {
        const altered = withData(payload, (data) => (data[index] = (data[index] ?? 0) ^ 1));
        await expectRefused(altered, "altered");
      }
      await expectRefused({ ...payload, data: payload.data?.subarray(0, -1) ?? null }, "altered");
      await expectRefused({ ...payload, data: null }, "altered");
      for (const [key, value] of Object.entries(payload.metadata ?? {})) {
        const changed = Buffer.from(value);
        changed[0] = (changed[0] ?? 0) ^ 1;
        const { value: found, refused } = await read({
          ...payload,
          metadata: { ...payload.metadata, [key]: changed },
        });
        expect(refused, key).to.have.length(1);
        expect(found, key).to.have.property("refused");
      }
    });

    it("a payload for another workflow or activity is refused, also where it is relabelled", async () => {
      const payload = await sealed(SECRET, isEncrypted);
      await expectRefused(payload, "misplaced", { context: workflow("ledger/2") });
      await expectRefused(payload, "misplaced", { context: activity("1") });
      const ofActivity = await sealed(SECRET, isEncrypted, activity("1"));
      await expectRefused(ofActivity, "misplaced", { context: activity("2") });
      await expectRefused(ofActivity, "misplaced");
      expect((await read(ofActivity, { context: activity("1") })).value).to.equal(SECRET);
      const renamed = { ...payload, metadata: { ...payload.metadata, place: Buffer.from("ledger/2") } };
      await expectRefused(renamed, "altered", { context: workflow("ledger/2") });
    });

    it("a rotated master key still opens what it sealed, and seals nothing", async () => {
      const payload = await sealed(SECRET, isEncrypted);
      expect((await read(payload, { keys: payloadKeysOf(rotated) })).value).to.equal(SECRET);
      await expectRefused(payload, "unknown_key", { keys: payloadKeysOf(second) });
      const [renewed] = await codecOf(isEncrypted, payloadKeysOf(rotated)).codec.encode(
        [payloadOf(SECRET)],
        HERE,
      );
      await expectRefused(renewed ?? {}, "unknown_key");
    });

    it("what no key has sealed is refused, whatever it says of itself", async () => {
      await expectRefused(payloadOf(SECRET), "unauthenticated");
      await expectRefused({}, "unauthenticated");
      const { metadata } = await sealed(SECRET, isEncrypted);
      await expectRefused(
        { metadata: metadata ?? {}, data: payloadOf("Flowers for me").data ?? null },
        "altered",
      );
    });
  });
}

describe("payloads in Temporal", () => {
  it("show nothing of their contents where they are encrypted, and all of it where they are not", async () => {
    for (const isEncrypted of [true, false]) {
      const { data } = await sealed({ text: SECRET }, isEncrypted);
      expect(Buffer.from(data ?? []).includes(SECRET)).to.equal(!isEncrypted);
    }
  });

  it("are read by a process whose setting is the other one", async () => {
    const opened = await codecOf(false).codec.decode([await sealed(SECRET, true)], HERE);
    expect(defaultPayloadConverter.fromPayload(opened[0] ?? {})).to.equal(SECRET);
  });
});
