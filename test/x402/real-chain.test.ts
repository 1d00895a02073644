import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { type Address, concatHex, erc20Abi, type Hex, numberToHex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { deployWalletFactory } from "../../server/admin/deploy-wallet-factory.ts";
import { mintData, sandboxTokenDeployment } from "../../src/chain/contracts.ts";
import { finalPayment } from "../support/chain.ts";
import { type OwnAnvil, startOwnChain } from "../support/own-anvil.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { elevate, type World, worldOf } from "../support/world.ts";
import { somebody } from "./hand-made.ts";
import { facilitatorOn, factsOf } from "./shops.ts";
import { openShopV1 } from "./v1-shop.ts";

/** Base Sepolia's, as version 1 of x402 names it. */
const CHAIN_ID = 84_532;
const ETHER = numberToHex(10n ** 18n);

/** Code of a contract by EIP-1271 for which one key signs: it asks the chain's `ecrecover`. */
const contractOf = (key: Address): Hex =>
  concatHex([
    "0x60043560005260a43560f81c602052606435604052608435606052602060806080600060015afa50",
    "0x60805173",
    key,
    "0x14631626ba7e60e01b0260005260206000f3",
  ]);

/** A service with settings of a real chain, which a local one stands for. */
describe("a service on a chain that is no sandbox", () => {
  let chain: OwnAnvil;
  let service: TestService;
  let world: World;
  let token: Address;
  let shopSide: Awaited<ReturnType<typeof facilitatorOn>>;
  const contract = somebody();
  const key = privateKeyToAccount(generatePrivateKey());

  before(async () => {
    chain = await startOwnChain(CHAIN_ID, "--block-time", "1");
    shopSide = await facilitatorOn(chain.url, CHAIN_ID);
    const { client } = shopSide;
    const deployed = sandboxTokenDeployment(client.account.address);
    token = deployed.address;
    const hash = await client.sendTransaction({ to: deployed.to, data: deployed.data });
    await client.waitForTransactionReceipt({ hash });
    const spender = generatePrivateKey();
    await chain.call("anvil_setBalance", [privateKeyToAccount(spender).address, ETHER]);
    await chain.call("anvil_setCode", [contract, contractOf(key.address)]);
    service = await startTestService({
      evmRpcUrl: chain.url,
      settings: {
        EVM_CHAIN_ID: String(CHAIN_ID),
        EVM_TOKEN_ADDRESS: token,
        EVM_TOKEN_DECIMALS: "6",
        EVM_SPENDER_KEY: spender,
        EVM_CONFIRMATIONS: "1",
      },
    });
    await deployWalletFactory(service.env);
    world = worldOf(service, await service.organization());
  });
  after(async () => {
    await service?.stop();
    await chain?.kill();
  });

  it("a contract owns wallets only with its signature (EIP-1271) of the text that names it", async () => {
    await elevate(world);
    const ask = (walletOwnerSignature?: string) => ({
      token: world.token,
      body: { walletOwner: contract, walletOwnerSignature },
    });
    const unproven = (request: ReturnType<typeof ask>) =>
      world.api.refused("updateOrganization", 422, "WALLET_OWNER_UNPROVEN", request);
    const { challenge = "" } = await unproven(ask());
    const stranger = privateKeyToAccount(generatePrivateKey());
    await unproven(ask(await stranger.signMessage({ message: challenge })));
    await unproven(ask(await key.signMessage({ message: `${challenge} ` })));
    const signed = ask(await key.signMessage({ message: challenge }));
    const { organization } = await world.api.ok("updateOrganization", 200, signed);
    expect(organization.walletOwner).to.equal(contract);
  });

  it("a shop of x402, version 1, is paid once, and its receipt names the transaction", async () => {
    const { client, facilitator } = shopSide;
    const agent = await world.agent();
    const { agent: shown } = await world.api.ok("getAgent", 200, { token: world.token, id: agent.id });
    const wallet = shown.wallet?.address as Address;
    const hash = await client.sendTransaction({ to: token, data: mintData(wallet, 10_000_000n) });
    await client.waitForTransactionReceipt({ hash });
    const payTo = somebody();
    const facts = await factsOf(client, token);
    const shop = await openShopV1(facilitator, facts, payTo);
    const purpose = { purpose: "a test", idempotencyKey: randomUUID() };
    const body = { url: `${shop.url}/paid`, maxAmountCents: 5, ...purpose };
    const bought = await world.api.ok("payX402Request", 201, { token: agent.key, body });
    expect(bought).to.deep.include({ httpStatus: 200, body: "goods" });
    const { transaction } = await finalPayment(world, agent, bought.transaction?.id ?? "");
    expect(transaction).to.deep.include({ status: "approved", protocol: "x402/1", amount: "0.001" });
    expect(transaction.receipt).to.include(transaction.onChainTxHash ?? "none");
    const read = { address: token, abi: erc20Abi, functionName: "balanceOf", args: [payTo] } as const;
    expect([await client.readContract(read), shop.paid()]).to.deep.equal([1_000n, 1]);
    await shop.close();
  });
});
