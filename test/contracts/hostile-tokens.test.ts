import { expect } from "chai";
import { type Address, type Hex, keccak256, toHex, zeroAddress } from "viem";
import { type Call, deployWallet, done, refused, walletCall } from "./support/calls.ts";
import { deployHostile, hostileTokens, reentrantTokenAbi } from "./support/hostile-tokens.ts";
import { type Scene, useScene, viewsOf } from "./support/scene.ts";

const [ID, INSIDE] = [keccak256(toHex("txn_1")), keccak256(toHex("txn_2"))];

const pay = (token: Address, wallet: Address, inside: Hex, to: Address, amount: bigint): Call => ({
  to: token,
  abi: reentrantTokenAbi,
  functionName: "pay",
  args: [wallet, ID, inside, to, amount],
});

describe("an agent's wallet and a token that means no good", () => {
  const scene = useScene();
  let bytecodes: ReadonlyMap<string, Hex>;
  before(() => {
    bytecodes = hostileTokens();
  });
  const deploy = (name: string) => deployHostile(scene().chain, scene().minter, bytecodes.get(name));

  /** A wallet whose spender may spend 100 of the token. */
  async function walletFor(token: Address): Promise<Address> {
    const { chain, owner, spender } = scene();
    const wallet = await deployWallet(chain, owner, spender);
    await done(chain, spender, walletCall(wallet, "setLimit", [token, 100n, 0n]));
    return wallet;
  }
  const spend = (wallet: Address, token: Address) =>
    walletCall(wallet, "spend", [ID, token, scene().shop, 1n]);
  const viewsFor = (token: Address, wallet: Address) =>
    viewsOf({ ...scene(), token } satisfies Scene, wallet);

  it("a token that answers false has not paid: the id stays unused and nothing is charged", async () => {
    const { chain, owner, spender, shop } = scene();
    const token = await deploy("FalseToken");
    const wallet = await walletFor(token);
    const failed = { name: "SafeERC20FailedOperation", args: [token] };
    expect(await refused(chain, spender, spend(wallet, token))).to.deep.equal(failed);
    const views = viewsFor(token, wallet);
    expect([await views.isSpent(ID), await views.totalSpent()]).to.deep.equal([false, 0n]);
    expect(await refused(chain, owner, walletCall(wallet, "withdraw", [token, shop, 1n]))).to.deep.equal(
      failed,
    );
  });

  it("an address without a contract is no token", async () => {
    const { chain, spender, stranger } = scene();
    const wallet = await walletFor(stranger);
    const failed = { name: "SafeERC20FailedOperation", args: [stranger] };
    expect(await refused(chain, spender, spend(wallet, stranger))).to.deep.equal(failed);
  });

  it("a token that answers nothing, as some old ones do, can be paid with", async () => {
    const { chain, spender } = scene();
    const token = await deploy("SilentToken");
    const wallet = await walletFor(token);
    await done(chain, spender, spend(wallet, token));
    expect(await viewsFor(token, wallet).totalSpent()).to.equal(1n);
  });

  it("a token that is the spender and calls back finds the id spent and the amount charged", async () => {
    const { chain, owner, stranger, shop } = scene();
    const token = await deploy("ReentrantToken");
    const wallet = await deployWallet(chain, owner, token);
    const setLimit = { to: token, abi: reentrantTokenAbi, functionName: "setLimit", args: [wallet, 100n] };
    await done(chain, stranger, setLimit);
    const again = { name: "AlreadySpent", args: [ID] };
    expect(await refused(chain, stranger, pay(token, wallet, ID, shop, 10n))).to.deep.equal(again);
    const exceeded = { name: "LimitExceeded", args: [token, 40n, 60n] };
    expect(await refused(chain, stranger, pay(token, wallet, INSIDE, shop, 60n))).to.deep.equal(exceeded);
    await done(chain, stranger, pay(token, wallet, INSIDE, shop, 50n));
    expect(await viewsFor(token, wallet).limit()).to.deep.equal([100n, 0n, 100n, 0n]);
    const moved = { address: token, abi: reentrantTokenAbi, functionName: "moved" } as const;
    expect(await chain.client.readContract(moved)).to.equal(100n);
  });

  it("a wallet that pays with itself for a token reverts", async () => {
    const { chain, spender } = scene();
    const wallet = await walletFor(zeroAddress);
    await done(chain, spender, walletCall(wallet, "setLimit", [wallet, 100n, 0n]));
    expect((await refused(chain, spender, spend(wallet, wallet))).name).to.equal("none");
  });
});
