import { randomBytes } from "node:crypto";
import { dropAfterFile } from "./finished-databases.ts";

export function requiredSetting(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set: run the tests with \`npm test\``);
  return value;
}

/** What a process of the service needs to work on the run's engines, with a database and a task queue of its own. */
export function sharedEngines() {
  const id = `test_${randomBytes(8).toString("hex")}`;
  const uri = new URL(requiredSetting("TEST_MONGODB_URI"));
  uri.pathname = `/${id}`;
  dropAfterFile(uri.toString());
  return {
    MONGODB_URI: uri.toString(),
    TEMPORAL_ADDRESS: requiredSetting("TEST_TEMPORAL_ADDRESS"),
    TEMPORAL_NAMESPACE: requiredSetting("TEST_TEMPORAL_NAMESPACE"),
    TEMPORAL_TASK_QUEUE: id,
    EVM_RPC_URL: requiredSetting("TEST_EVM_RPC_URL"),
    MASTER_KEY: "a-master-key-for-tests-long-enough-to-be-one",
  };
}
