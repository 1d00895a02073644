import { MasterKey } from "../../src/secrets/master-key.ts";
import { payloadKeysOf } from "../../src/temporal/payload-keys.ts";
import {
  openPayloads,
  type TemporalPayloads,
  type TemporalPayloadsOptions,
} from "../../src/temporal/temporal-payloads.ts";

export const TEST_MASTER_KEY = "a-master-key-for-tests-long-enough-to-be-one";

/** Payloads of tests, of one key and readable: recorded histories are compared by people. */
export const testPayloads = (options: Partial<TemporalPayloadsOptions> = {}): TemporalPayloads =>
  openPayloads({
    keys: payloadKeysOf(MasterKey.parse(TEST_MASTER_KEY, "a test")),
    isEncrypted: false,
    ...options,
  });
