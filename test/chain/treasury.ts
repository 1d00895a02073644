import { randomUUID } from "node:crypto";
import type { Db } from "mongodb";
import {
  type Address,
  concatHex,
  encodeFunctionData,
  erc20Abi,
  getContractAddress,
  type Hash,
  type Hex,
  keccak256,
  numberToHex,
  pad,
  size,
  slice,
} from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { SANDBOX_FEES } from "../../src/chain/sandbox.ts";
import { unitsOf } from "../../src/chain/units.ts";
import { COLLECTIONS, type EventDocument } from "../../src/store/documents.ts";
import type { Wallets } from "../../src/rails/wallet/index.ts";
import { mined } from "../support/mined.ts";
import type { OwnAnvil } from "../support/own-anvil.ts";
import { type Instance, newId, openScene, type Scene } from "./support.ts";

/** Steps until a watch that is not disturbed is no longer behind. */
const STEPS_MAX = 200;

export interface TestTreasury {
  readonly organizationId: string;
  readonly address: Address;
}

/** An account with test money that is not the service's. */
export interface Holder {
  /** Sends it in a transaction of its own; answers once it is mined. */
  pay(to: Address, cents: number): Promise<Sent>;
  /** Hands it over, for whenever a block is mined. */
  begin(to: Address, units: bigint): Promise<Sent>;
  /** Sends several transfers in one transaction. */
  payTogether(transfers: readonly (readonly [Address, number])[]): Promise<Sent>;
}

export interface Sent {
  readonly hash: Hash;
  readonly raw: Hex;
}

/** A service's chain without the rest, organizations with treasuries, and people who send them money. */
export interface TreasuryScene {
  readonly scene: Scene;
  readonly instance: Instance;
  organization(): Promise<TestTreasury>;
  holder(cents: number): Promise<Holder>;
  mine(blocks: number): Promise<void>;
  /** What was told of an organization, oldest first. */
  told(treasury: TestTreasury): Promise<readonly EventDocument[]>;
  toldCents(treasury: TestTreasury): Promise<readonly number[]>;
}

/** Steps until it is no longer behind. */
export async function catchUp({ deposits }: Pick<Wallets, "deposits">): Promise<void> {
  for (let steps = 0; steps < STEPS_MAX; steps += 1) if (!(await deposits.step()).isBehind) return;
  throw new Error("the watch is behind for good");
}

export const cursorsOf = (db: Db) => db.collection<{ _id: string; block: number }>(COLLECTIONS.chainCursors);

export async function openTreasuryScene(anvil: OwnAnvil): Promise<TreasuryScene> {
  const scene = await openScene(anvil.url);
  const instance = scene.open();
  const { chain, db, config } = scene;

  const mint = async (to: Address, amountCents: number): Promise<void> => {
    const minted = await instance.wallets.sandbox?.mint(newId("mint"), to, amountCents);
    if (minted === null || minted === undefined) throw new Error("the holder got no money");
  };
  const done = async (sent: Sent): Promise<Sent> => {
    const { status } = await mined(chain, sent.hash);
    if (status !== "success") throw new Error("the transfer was undone");
    return sent;
  };

  async function holder(cents: number): Promise<Holder> {
    const account = privateKeyToAccount(generatePrivateKey());
    await anvil.call("anvil_setBalance", [account.address, numberToHex(10n ** 21n)]);
    if (cents > 0) await mint(account.address, cents);
    let nonce = 0;
    const send = async (to: Address | undefined, data: Hex): Promise<Sent> => {
      const common = { chainId: config.chainId, nonce, data, gas: 2_000_000n, ...SANDBOX_FEES };
      const raw = await account.signTransaction({ type: "eip1559", ...common, ...(to && { to }) });
      nonce += 1;
      await anvil.call("eth_sendRawTransaction", [raw]);
      return { raw, hash: keccak256(raw) };
    };
    const begin = (to: Address, units: bigint) => send(config.token, transferData(to, units));
    return {
      begin,
      pay: async (to, amountCents) => done(await begin(to, unitsOf(amountCents, config.tokenDecimals))),
      async payTogether(transfers) {
        const payer = getContractAddress({ from: account.address, nonce: BigInt(nonce) });
        for (const [, amountCents] of transfers) await mint(payer, amountCents);
        const calls = transfers.map(([to, amountCents]) =>
          callCode(config.token, transferData(to, unitsOf(amountCents, config.tokenDecimals))),
        );
        return done(await send(undefined, concatHex([...calls, STOP])));
      },
    };
  }

  const told = ({ organizationId }: TestTreasury): Promise<readonly EventDocument[]> =>
    db
      .collection<EventDocument>(COLLECTIONS.events)
      .find({ organizationId })
      .sort({ createdAt: 1, _id: 1 })
      .toArray();

  return {
    scene,
    instance,
    holder,
    told,
    async organization() {
      const organizationId = randomUUID();
      await db.collection<{ _id: string }>("organizations").insertOne({ _id: organizationId });
      const address = await instance.wallets.treasuries.of(organizationId);
      if (address === null) throw new Error("the organization got no treasury");
      return { organizationId, address };
    },
    async mine(blocks) {
      await anvil.call("anvil_mine", [numberToHex(blocks)]);
    },
    async toldCents(treasury) {
      return (await told(treasury)).map(({ data }) => data.deposit?.amountCents ?? -1);
    },
  };
}

const transferData = (to: Address, units: bigint): Hex =>
  encodeFunctionData({ abi: erc20Abi, functionName: "transfer", args: [to, units] });

const WORD_BYTES = 32;
const STOP = "0x00";
const PUSH32 = "0x7f";
const MSTORE_AT = (offset: number): Hex => concatHex(["0x60", numberToHex(offset, { size: 1 }), "0x52"]);

/** What makes a call, as part of a contract's constructor: one transaction that does several things. */
function callCode(to: Address, data: Hex): Hex {
  const length = size(data);
  const words: Hex[] = [];
  for (let at = 0; at < length; at += WORD_BYTES) {
    const word = pad(slice(data, at, Math.min(length, at + WORD_BYTES)), { dir: "right", size: WORD_BYTES });
    words.push(PUSH32, word, MSTORE_AT(at));
  }
  // Nothing is awaited back, and no value sent; the call's outcome is left to the reader.
  const call = concatHex(["0x60006000", "0x60", numberToHex(length, { size: 1 }), "0x60006000", "0x73", to]);
  return concatHex([...words, call, "0x5af150"]);
}
