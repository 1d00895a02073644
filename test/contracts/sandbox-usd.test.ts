import { expect } from "chai";
import { type Hex, keccak256, maxUint256, parseSignature, toHex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { anvil } from "viem/chains";
import { sandboxUSDAbi } from "../../contracts/artifacts/index.ts";
import { done, refused, send, tokenCall } from "./support/calls.ts";
import { balanceOf, mint, nextEdge, type Scene, useScene } from "./support/scene.ts";

const TRANSFER = [
  { name: "from", type: "address" },
  { name: "to", type: "address" },
  { name: "value", type: "uint256" },
  { name: "validAfter", type: "uint256" },
  { name: "validBefore", type: "uint256" },
  { name: "nonce", type: "bytes32" },
] as const;
const types = {
  TransferWithAuthorization: TRANSFER,
  ReceiveWithAuthorization: TRANSFER,
  CancelAuthorization: [
    { name: "authorizer", type: "address" },
    { name: "nonce", type: "bytes32" },
  ],
} as const;

/** Who pays has a key and no coin to pay for gas with: that is what these authorizations are for. */
const payer = privateKeyToAccount(generatePrivateKey());
const thief = privateKeyToAccount(generatePrivateKey());

const domainOf = ({ token }: Scene) =>
  ({ name: "Sandbox USD", version: "1", chainId: anvil.id, verifyingContract: token }) as const;

const split = (signature: Hex) => {
  const { r, s, yParity } = parseSignature(signature);
  return [27 + yParity, r, s] as const;
};

interface Wish {
  readonly nonce: Hex;
  readonly value?: bigint;
  readonly validAfter?: bigint;
  readonly validBefore?: bigint;
  readonly signer?: typeof payer;
  readonly kind?: "TransferWithAuthorization" | "ReceiveWithAuthorization";
}

/** A transfer to the shop that the payer, or another in the payer's name, signed. */
async function authorized(scene: Scene, wish: Wish) {
  const { nonce, value = 5n, validAfter = 0n, validBefore = maxUint256, signer = payer } = wish;
  const primaryType = wish.kind ?? "TransferWithAuthorization";
  const message = { from: payer.address, to: scene.shop, value, validAfter, validBefore, nonce };
  const signature = await signer.signTypedData({ domain: domainOf(scene), types, primaryType, message });
  return [payer.address, scene.shop, value, validAfter, validBefore, nonce, ...split(signature)] as const;
}

const nonceOf = (text: string): Hex => keccak256(toHex(text));

describe("the sandbox's test token", () => {
  const scene = useScene();
  before(() => mint(scene(), payer.address, 1_000n));

  it("looks as USDC does: 6 decimals, and a name that says what it is not", async () => {
    const { chain, token: address } = scene();
    const read = { address, abi: sandboxUSDAbi } as const;
    expect(await chain.client.readContract({ ...read, functionName: "decimals" })).to.equal(6);
    expect(await chain.client.readContract({ ...read, functionName: "name" })).to.equal("Sandbox USD");
    expect(await chain.client.readContract({ ...read, functionName: "symbol" })).to.equal("sUSD");
    const [, name, version] = await chain.client.readContract({ ...read, functionName: "eip712Domain" });
    expect([name, version]).to.deep.equal(["Sandbox USD", "1"]);
  });

  it("only the minter mints", async () => {
    const { chain, token, minter, stranger } = scene();
    const call = tokenCall(token, "mint", [stranger, 1n]);
    expect(await refused(chain, stranger, call)).to.deep.equal({ name: "NotMinter", args: [stranger] });
    expect((await done(chain, minter, call)).ok).to.equal(true);
  });

  it("an authorization moves the money of its signer, by any submitter, once", async () => {
    const { chain, token, shop, stranger } = scene();
    const before = await balanceOf(scene(), shop);
    const nonce = nonceOf("once");
    const call = tokenCall(token, "transferWithAuthorization", await authorized(scene(), { nonce }));
    const { events } = await done(chain, stranger, call);
    expect(events[0]).to.deep.equal({
      name: "AuthorizationUsed",
      args: { authorizer: payer.address, nonce },
    });
    expect((await balanceOf(scene(), shop)) - before).to.equal(5n);
    const used = { name: "ERC3009UsedAuthorization", args: [payer.address, nonce] };
    expect(await refused(chain, stranger, call)).to.deep.equal(used);
    const other = await authorized(scene(), { nonce, value: 6n });
    expect(
      await refused(chain, stranger, tokenCall(token, "transferWithAuthorization", other)),
    ).to.deep.equal(used);
  });

  it("an authorization is good strictly between its times", async () => {
    const { chain, token, stranger } = scene();
    const start = await nextEdge(scene(), 100n);
    const during = { validAfter: start, validBefore: start + 10n };
    const attempt = async (name: string, at: bigint) => {
      const args = await authorized(scene(), { nonce: nonceOf(name), ...during });
      const outcome = await send(chain, stranger, tokenCall(token, "transferWithAuthorization", args), at);
      return outcome.ok ? "moved" : outcome.error.name;
    };
    const refusal = "ERC3009InvalidAuthorizationTime";
    expect(await attempt("too early", start)).to.equal(refusal);
    expect(await attempt("first", start + 1n)).to.equal("moved");
    expect(await attempt("last", start + 9n)).to.equal("moved");
    expect(await attempt("too late", start + 10n)).to.equal(refusal);
  });

  it("what another signed, or what was altered after it was signed, moves nothing", async () => {
    const { chain, token, stranger } = scene();
    const invalid = { name: "ERC3009InvalidSignature", args: [] };
    const forged = await authorized(scene(), { nonce: nonceOf("forged"), signer: thief });
    expect(
      await refused(chain, stranger, tokenCall(token, "transferWithAuthorization", forged)),
    ).to.deep.equal(invalid);
    const [from, , value, ...rest] = await authorized(scene(), { nonce: nonceOf("altered") });
    const altered = tokenCall(token, "transferWithAuthorization", [from, stranger, value, ...rest]);
    expect(await refused(chain, stranger, altered)).to.deep.equal(invalid);
    const receive = await authorized(scene(), { nonce: nonceOf("kind"), kind: "ReceiveWithAuthorization" });
    expect(
      await refused(chain, stranger, tokenCall(token, "transferWithAuthorization", receive)),
    ).to.deep.equal(invalid);
  });

  it("an authorization to receive is good in the recipient's hand only", async () => {
    const { chain, token, shop, stranger } = scene();
    const args = await authorized(scene(), { nonce: nonceOf("receive"), kind: "ReceiveWithAuthorization" });
    const call = tokenCall(token, "receiveWithAuthorization", args);
    expect(await refused(chain, stranger, call)).to.deep.equal({
      name: "ERC20InvalidReceiver",
      args: [shop],
    });
    expect((await done(chain, shop, call)).ok).to.equal(true);
  });

  it("a cancelled authorization moves nothing, and only its signer cancels it", async () => {
    const { chain, token, stranger } = scene();
    const nonce = nonceOf("cancelled");
    const domain = domainOf(scene());
    const message = { authorizer: payer.address, nonce };
    const cancel = async (signer: typeof payer) => {
      const signature = await signer.signTypedData({
        domain,
        types,
        primaryType: "CancelAuthorization",
        message,
      });
      return tokenCall(token, "cancelAuthorization", [payer.address, nonce, ...split(signature)]);
    };
    expect((await refused(chain, stranger, await cancel(thief))).name).to.equal("ERC3009InvalidSignature");
    await done(chain, stranger, await cancel(payer));
    const transfer = tokenCall(token, "transferWithAuthorization", await authorized(scene(), { nonce }));
    expect((await refused(chain, stranger, transfer)).name).to.equal("ERC3009UsedAuthorization");
    const state = {
      address: token,
      abi: sandboxUSDAbi,
      functionName: "authorizationState",
      args: [payer.address, nonce],
    } as const;
    expect(await chain.client.readContract(state)).to.equal(true);
  });
});
