import { expect } from "chai";
import { zeroAddress } from "viem";
import { AGENT_TOOL_TEXTS } from "../../src/contract/tool-texts/agent.ts";
import { McpCaller } from "../mcp/support.ts";
import {
  ChainView,
  expectChainAgrees,
  freshRecipient,
  fundedAgent,
  walletPayment,
} from "../support/chain.ts";
import { counts, newWorld, type TestAgent, type World } from "../support/world.ts";

describe("who a wallet payment may go to", () => {
  let world: World;
  let agent: TestAgent;
  let mcp: McpCaller;
  let wrong: Readonly<Record<string, string>>;
  before(async () => {
    world = await newWorld();
    agent = await fundedAgent(world, 1_000);
    mcp = await McpCaller.connect(world.service.baseUrl, agent.key);
    const chain = new ChainView(world);
    const [own, token] = await Promise.all([chain.walletAddress(agent), chain.token(agent)]);
    const good = freshRecipientWithLetters();
    wrong = {
      "a wrong checksum": flipped(good),
      "all upper case": `0x${good.slice(2).toUpperCase()}`,
      "the zero address": zeroAddress,
      "the agent's own wallet": own,
      "the agent's own wallet in lower case": own.toLowerCase(),
      "the token": token,
      "the token in lower case": token.toLowerCase(),
      "not hex": `0x${"g".repeat(40)}`,
      "too short": good.slice(0, -1),
      "too long": `${good}0`,
      "no 0x": good.slice(2),
      "an 0X": `0X${good.slice(2).toLowerCase()}`,
      "white space around it": ` ${good}`,
      "a line break after it": `${good}\n`,
      "a name": "vitalik.eth",
      nothing: "",
    };
  });
  after(() => mcp.close());

  it("a wrong recipient is 400 VALIDATION_FAILED by name, over REST, MCP and for check_payment", async () => {
    const before = await counts(world);
    for (const [what, recipient] of Object.entries(wrong)) {
      const body = walletPayment(recipient);
      const refused = await world.api.refused("createPayment", 400, "VALIDATION_FAILED", {
        token: agent.key,
        body,
      });
      const { rail, ...args } = body;
      const byTool = await mcp.refused("create_wallet_payment", "VALIDATION_FAILED", args);
      const checked = await mcp.refused("check_payment", "VALIDATION_FAILED", { rail, ...args });
      for (const { issues } of [refused, byTool, checked]) {
        expect(new Set(issues?.map(({ path }) => path)), what).to.deep.equal(new Set(["recipient"]));
      }
    }
    expect(await counts(world)).to.deep.equal(before);
  });

  /** What is wrong with a recipient, in words; how it must be follows after it. */
  const said = async (recipient: string | undefined) => {
    const { rail: _rail, ...args } = walletPayment(recipient ?? "");
    const { issues } = await mcp.refused("create_wallet_payment", "VALIDATION_FAILED", args);
    const { recipient: text = "" } = AGENT_TOOL_TEXTS.create_wallet_payment.arguments;
    return (issues ?? []).map(({ message }) => message.replace(`. ${text}`, ""));
  };

  it("what is said of a wrong one tells an agent what to mend, once", async () => {
    expect(await said(wrong["a wrong checksum"])).to.deep.equal([
      "must be all lower case or carry its checksum",
    ]);
    expect(await said(wrong["not hex"])).to.deep.equal(["must be an address"]);
    expect(await said(wrong["the zero address"])).to.deep.equal(["must not be the zero address"]);
    expect(await said(wrong["the token"])).to.deep.equal(["must not be the token itself"]);
    expect(await said(wrong["the agent's own wallet"])).to.deep.equal(["must not be the agent's own wallet"]);
  });

  it("a body's shape is checked: rail and recipient go together, amounts and currency are valid", async () => {
    const to = freshRecipient();
    const { recipient: _recipient, ...nobody } = walletPayment(to);
    for (const [body, path] of [
      [nobody, "recipient"],
      [walletPayment(to, { merchant: "shop" }), "merchant"],
      [walletPayment(to, { amountCents: 0 }), "amountCents"],
      [walletPayment(to, { amountCents: 1.5 }), "amountCents"],
      [walletPayment(to, { currency: "USDC" }), "currency"],
    ] as const) {
      const request = { token: agent.key, body };
      const { issues } = await world.api.refused("createPayment", 400, "VALIDATION_FAILED", request);
      expect(issues?.map((issue) => issue.path)).to.include(path);
    }
  });

  it("an address in lower case is good, and is shown with its checksum", async () => {
    const to = freshRecipientWithLetters();
    const body = walletPayment(to.toLowerCase());
    const { transaction } = await world.api.ok("createPayment", 201, { token: agent.key, body });
    expect(transaction).to.deep.include({ status: "approved", merchant: to });
    await expectChainAgrees(world, agent, 1_000);
  });

  it("another agent's wallet is a recipient like any other", async () => {
    const other = await world.agent();
    const chain = new ChainView(world);
    const to = await chain.walletAddress(other);
    const body = walletPayment(to, { amountCents: 50 });
    const { transaction } = await world.api.ok("createPayment", 201, { token: agent.key, body });
    expect(transaction.status).to.equal("approved");
    expect(await chain.cents(agent, to)).to.equal(50);
  });
});

/** One whose checksum says something. */
function freshRecipientWithLetters(): string {
  for (;;) {
    const address = freshRecipient();
    if (/[a-f]/.test(address) && /[A-F].*[A-F]/.test(address.slice(2))) return address;
  }
}

/** The same address with one letter in the other case. */
function flipped(address: string): string {
  const at = address.slice(2).search(/[A-F]/) + 2;
  return `${address.slice(0, at)}${address.charAt(at).toLowerCase()}${address.slice(at + 1)}`;
}
