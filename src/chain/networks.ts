import { ConfigError } from "../lib/config-error.ts";

/** Chains that can be configured by name (`EVM_NETWORK`): their ids, and USDC on them. */
const NETWORKS = {
  base: {
    EVM_CHAIN_ID: "8453",
    EVM_TOKEN_ADDRESS: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
    EVM_TOKEN_DECIMALS: "6",
    EVM_CONFIRMATIONS: "5",
  },
  "base-sepolia": {
    EVM_CHAIN_ID: "84532",
    EVM_TOKEN_ADDRESS: "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
    EVM_TOKEN_DECIMALS: "6",
    EVM_CONFIRMATIONS: "5",
  },
} as const;

type Network = keyof typeof NETWORKS;
const isNetwork = (name: string): name is Network => Object.hasOwn(NETWORKS, name);

/** Settings that may differ from the network's: the others identify chain and token. */
const MAY_DIFFER: readonly string[] = ["EVM_CONFIRMATIONS"];

/** Returns the environment with its `EVM_NETWORK` expanded. Throws `ConfigError` if unknown or contradictory. */
export function withNetwork(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const name = env["EVM_NETWORK"] ?? "";
  if (name === "") return env;
  if (!isNetwork(name)) throw new ConfigError(`EVM_NETWORK: must be ${Object.keys(NETWORKS).join(" or ")}`);
  const network = NETWORKS[name];
  for (const [setting, value] of Object.entries(network)) {
    const given = env[setting] ?? value;
    if (given.toLowerCase() !== value.toLowerCase() && !MAY_DIFFER.includes(setting))
      throw new ConfigError(`${setting}: contradicts EVM_NETWORK; leave one of them out`);
  }
  return { ...network, ...env };
}
