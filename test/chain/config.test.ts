import { expect } from "chai";
import { MongoClient } from "mongodb";
import { inspect } from "node:util";
import { readChain } from "../../server/chain.ts";
import { ConfigError } from "../../src/lib/config-error.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";

const RPC_URL = "http://127.0.0.1:1/with-a-key";
const KEY = `0x${"42".repeat(32)}`;
const TOKEN = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48";
const masterKey = MasterKey.parse("a-master-key-for-tests-long-enough-to-be-one", "the test");
const databaseNamed = (name: string) => new MongoClient("mongodb://127.0.0.1:1").db(name);
const db = databaseNamed("one");

const PRODUCTION = {
  EVM_CHAIN_ID: "8453",
  EVM_TOKEN_ADDRESS: TOKEN,
  EVM_TOKEN_DECIMALS: "6",
  EVM_SPENDER_KEY: KEY,
} as const;

const byName = (network: string, env: NodeJS.ProcessEnv = {}) =>
  readChain(RPC_URL, { EVM_NETWORK: network, EVM_SPENDER_KEY: KEY, ...env }, masterKey, db);

describe("a chain's configuration", () => {
  it("of a real chain must name its id, token and key; all else has safe defaults", () => {
    const { config, sandbox, signer } = readChain(RPC_URL, PRODUCTION, masterKey, db);
    expect(sandbox).to.equal(false);
    expect(config).to.include({ chainId: 8453, token: TOKEN, tokenDecimals: 6, confirmations: 12 });
    expect(config.fixedFees, "fees are the chain's").to.equal(null);
    expect(config.maxFeePerGas, "500 gwei").to.equal(500_000_000_000n);
    expect(signer.address).to.match(/^0x[0-9a-fA-F]{40}$/);
  });

  for (const [name, value] of [
    ["EVM_CHAIN_ID", undefined],
    ["EVM_CHAIN_ID", "0"],
    ["EVM_TOKEN_ADDRESS", TOKEN.replace("A0", "a0")],
    ["EVM_TOKEN_DECIMALS", "1"],
    ["EVM_SPENDER_KEY", undefined],
    ["EVM_SPENDER_KEY", KEY.slice(0, -2)],
    ["EVM_SPENDER_KEY", KEY.slice(0, -1)],
    ["EVM_SPENDER_KEY", `0x${"f".repeat(64)}`],
    ["EVM_CONFIRMATIONS", "0"],
    ["EVM_MAX_FEE_PER_GAS_GWEI", "0"],
    ["EVM_MAX_FEE_PER_GAS_GWEI", "a lot"],
    ["EVM_WALLET_FACTORY_ADDRESS", "the factory"],
  ] as const) {
    it(`${name}=${String(value).slice(0, 12)} is refused by name, its value not repeated`, () => {
      const env = { ...PRODUCTION, [name]: value };
      const read = () => readChain(RPC_URL, env, masterKey, db);
      expect(read).to.throw(ConfigError, name);
      expect(read).not.to.throw(KEY.slice(2, 20));
      if (name === "EVM_SPENDER_KEY" && value !== undefined)
        expect(read).not.to.throw(BigInt(value).toString());
    });
  }

  it("of Base follows from its name; what contradicts the name is refused", () => {
    const usdc = { tokenDecimals: 6, confirmations: 5, pocketFloatCents: 500 };
    const base = { chainId: 8453, token: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", ...usdc };
    const sepolia = { chainId: 84532, token: "0x036CbD53842c5426634e7929541eC2318f3dCF7e", ...usdc };
    expect(byName("base").config).to.include(base);
    expect(byName("base-sepolia").config).to.include(sepolia);
    expect(byName("base", { EVM_CONFIRMATIONS: "20" }).config.confirmations).to.equal(20);
    expect(() => byName("base", { EVM_TOKEN_ADDRESS: TOKEN })).to.throw(ConfigError, "EVM_TOKEN_ADDRESS");
    expect(() => byName("ethereum")).to.throw(ConfigError, "EVM_NETWORK");
  });

  it("without a token is a sandbox: chain 31337 only, with a hidden key for each database", () => {
    const [one, again, other] = [db, db, databaseNamed("other")].map((each) =>
      readChain(RPC_URL, { EVM_SPENDER_KEY: KEY }, masterKey, each),
    );
    expect(one?.config.chainId).to.equal(31_337);
    expect(one?.signer.address).to.equal(again?.signer.address);
    expect(one?.signer.address, "a key of its own").not.to.equal(other?.signer.address);
    const shown = inspect(one, { depth: 10, showHidden: true });
    expect(shown).not.to.match(/[0-9a-f]{64}/i);
  });
});
