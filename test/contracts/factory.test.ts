import { expect } from "chai";
import { concat, encodeDeployData, getContractAddress, keccak256, toHex, zeroAddress, zeroHash } from "viem";
import {
  agentWalletArtifact,
  agentWalletFactoryArtifact,
  sandboxUSDArtifact,
} from "../../contracts/artifacts/index.ts";
import { done, factoryCall, refused, walletCall } from "./support/calls.ts";
import { addressOf, balanceOf, mint, useScene, viewsOf } from "./support/scene.ts";
import { mined } from "../support/mined.ts";

const saltOf = (agentId: string) => keccak256(toHex(agentId));
/** On every chain that matters, and on anvil from the start. */
const CREATE2_PROXY = "0x4e59b44847b379578588920cA78FbF26c0B4956C";
const ID = saltOf("txn_1");

describe("the factory of agents' wallets", () => {
  const scene = useScene();

  it("the address is CREATE2's of owner, spender and salt, computable without the chain", async () => {
    const { owner, spender, factory } = scene();
    const [salt, args] = [saltOf("agent-1"), [owner, spender] as const];
    const bytecode = encodeDeployData({ ...agentWalletArtifact, args });
    const predicted = getContractAddress({ opcode: "CREATE2", from: factory, salt, bytecode });
    expect(await addressOf(scene(), owner, spender, salt)).to.equal(predicted);
  });

  it("by any deployer the wallet is the owner's and the spender's; the deployer gets nothing", async () => {
    const { chain, owner, spender, stranger, factory } = scene();
    const salt = saltOf("agent-2");
    const wallet = await addressOf(scene(), owner, spender, salt);
    const { events } = await done(chain, stranger, factoryCall(factory, "deploy", [owner, spender, salt]));
    expect(events).to.deep.equal([{ name: "WalletDeployed", args: { wallet, owner, spender, salt } }]);
    const views = viewsOf(scene(), wallet);
    expect([await views.owner(), await views.spender()]).to.deep.equal([owner, spender]);
  });

  it("money that was sent to the address before the wallet was there can be spent after", async () => {
    const { chain, owner, spender, factory, token, shop } = scene();
    const salt = saltOf("agent-3");
    const wallet = await addressOf(scene(), owner, spender, salt);
    await mint(scene(), wallet, 70n);
    const before = await balanceOf(scene(), shop);
    await done(chain, spender, factoryCall(factory, "deploy", [owner, spender, salt]));
    await done(chain, spender, walletCall(wallet, "setLimit", [token, 70n, 0n]));
    await done(chain, spender, walletCall(wallet, "spend", [ID, token, shop, 70n]));
    expect((await balanceOf(scene(), shop)) - before).to.equal(70n);
  });

  it("a second deploy answers the same wallet, and has no effect on it", async () => {
    const { chain, owner, spender, heir, factory } = scene();
    const deploy = factoryCall(factory, "deploy", [owner, spender, saltOf("agent-4")]);
    await done(chain, spender, deploy);
    const wallet = await addressOf(scene(), owner, spender, saltOf("agent-4"));
    await done(chain, owner, walletCall(wallet, "setSpender", [heir]));
    const { result } = await chain.client.simulateContract({ ...deploy, address: factory, account: spender });
    expect(result).to.equal(wallet);
    expect((await done(chain, spender, deploy)).events).to.deep.equal([]);
    expect(await viewsOf(scene(), wallet).spender()).to.equal(heir);
  });

  it("another owner, spender or salt gives another address, so that no attacker is there first", async () => {
    const { chain, owner, spender, stranger, factory } = scene();
    const salt = saltOf("agent-5");
    const variants = [
      [owner, spender, salt],
      [stranger, spender, salt],
      [owner, stranger, salt],
      [spender, owner, salt],
      [owner, spender, saltOf("agent-6")],
    ] as const;
    const addresses = await Promise.all(variants.map((args) => addressOf(scene(), ...args)));
    expect(new Set(addresses).size).to.equal(variants.length);
    // A thief who knows what will be deployed deploys all around it, and does not get in the way.
    for (const args of variants.slice(1)) await done(chain, stranger, factoryCall(factory, "deploy", args));
    await done(chain, spender, factoryCall(factory, "deploy", [owner, spender, salt]));
    expect(await viewsOf(scene(), await addressOf(scene(), owner, spender, salt)).owner()).to.equal(owner);
  });

  it("factory and token lie where their init code says, deployed by the well-known proxy", async () => {
    const { chain, minter } = scene();
    const initCodes = [
      agentWalletFactoryArtifact.bytecode,
      encodeDeployData({ ...sandboxUSDArtifact, args: [minter] }),
    ];
    for (const bytecode of initCodes) {
      const address = getContractAddress({
        opcode: "CREATE2",
        from: CREATE2_PROXY,
        salt: zeroHash,
        bytecode,
      });
      const data = concat([zeroHash, bytecode]);
      const hash = await chain.client.sendTransaction({
        account: minter,
        to: CREATE2_PROXY,
        data,
        chain: null,
      });
      await mined(chain.client, hash);
      expect(await chain.client.getCode({ address })).to.match(/^0x[0-9a-f]{100}/);
    }
  });

  it("a wallet without an owner is refused, one without a spender is not", async () => {
    const { chain, owner, spender, factory } = scene();
    const ownerless = factoryCall(factory, "deploy", [zeroAddress, spender, saltOf("agent-7")]);
    expect(await refused(chain, spender, ownerless)).to.deep.equal({
      name: "OwnableInvalidOwner",
      args: [zeroAddress],
    });
    await done(chain, spender, factoryCall(factory, "deploy", [owner, zeroAddress, saltOf("agent-7")]));
  });
});
