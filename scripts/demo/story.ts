import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { agent, approval, listOf, madePayment, payment, transaction } from "../../src/contract/records.ts";
import { operations } from "../../src/contract/registry.ts";
import { spentOnChain } from "./chain.ts";
import { AgentClient, Owner } from "./clients.ts";
import { receiveApproval } from "./webhooks.ts";
import { dollars, expectStep, type Stage, tell } from "./stage.ts";

const BUDGET_CENTS = 20_000;
const THRESHOLD_CENTS = 5_000;
/** Short enough to watch an approval window close. */
const IMPATIENT_WINDOW_SECONDS = 3;
const EXPIRY_WAIT_MS = 20_000;
/** Not so often that the story meets a free plan's 60 requests a minute over MCP. */
const EXPIRY_POLL_MS = 1_000;

const WALLET_CENTS = 10_000;
const SENT_CENTS = 2_500;
/** The local chain's test dollar has 6 decimals. */
const UNITS_PER_CENT = 10_000;
/** An account on the local chain. */
const SUPPLIER = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

const organization = z.object({ organizationId: z.string(), teamId: z.string() });
const session = z.object({ token: z.string() });
const created = z.object({ agent, apiKey: z.string() });
const approvals = listOf("approvals", approval);
const one = z.object({ approval });
const transactions = listOf("transactions", transaction);

/** The story: an agent pays, a person decides, limits hold. Throws `StepDiffers` at the first step that differs. */
export async function playStory(stage: Stage): Promise<void> {
  const { baseUrl, mcpUrl } = stage.runtime;
  const owner = new Owner(baseUrl);
  const bot = await setUp(stage, owner);
  const mcp = await AgentClient.connect(`${mcpUrl}/mcp`, bot.apiKey);
  const paid = [
    await payAtOnce(mcp),
    await payHeldAndApproved(mcp, owner),
    await payHeldAndDenied(mcp, owner),
    await payLeftAlone(stage, mcp, bot.apiKey),
    await payFromWallet(stage, mcp, owner, bot.agent.id),
    await payOverBudget(mcp),
  ];
  await mcp.close();
  await readTransactions(owner, bot.agent.id, paid);
  await receiveApproval(stage);
}

async function setUp(stage: Stage, owner: Owner) {
  const email = `owner-${randomBytes(4).toString("hex")}@example.com`;
  const password = randomBytes(18).toString("base64url");
  const { teamId } = organization.parse(
    await stage.admin(
      "create-organization",
      { name: "Demo", "owner-email": email },
      // The link that the start has printed is for the operator who reads along.
      { flags: ["leave-set-up-open"], input: password },
    ),
  );
  tell("operator", "created the organization Demo with the admin command");

  owner.signedInWith((await owner.call(session, "POST", "/v1/auth/sign-in", { email, password })).token);
  tell("owner", `signed in as ${email}`);

  const bot = await owner.call(created, "POST", "/v1/agents", {
    name: "Shopping agent",
    teamId,
    budgetCents: BUDGET_CENTS,
    autoApprovalThresholdCents: THRESHOLD_CENTS,
  });
  expectStep("the new agent's state", bot.agent.state, "active");
  tell("owner", `created an agent: budget ${dollars(BUDGET_CENTS)}, asks above ${dollars(THRESHOLD_CENTS)}`);
  return bot;
}

async function payAtOnce(mcp: AgentClient) {
  const names = await mcp.toolNames();
  for (const { access, tool } of Object.values(operations)) {
    if (tool !== null && access.kind === "agent")
      expectStep(`the tool ${tool.name} is listed`, names.includes(tool.name), true);
  }
  tell("agent", `sees its tools over MCP: ${names.join(", ")}`);
  const { transaction: paid } = await mcp.pay(madePayment, 1_200, "Paper & Pens", "Notebooks for the team");
  expectStep("a payment of 12.00", paid.status, "approved");
  tell("agent", `paid ${dollars(1_200)} by card: ${paid.status} at once (${paid.id})`);
  return { id: paid.id, status: "approved" };
}

/** Makes a payment that must be held, and reads it back as pending. */
async function hold(mcp: AgentClient, amountCents: number, merchant: string, purpose: string) {
  const { transaction: made, approval: asked } = await mcp.pay(madePayment, amountCents, merchant, purpose);
  expectStep(
    `a payment of ${dollars(amountCents)}`,
    [made.status, asked?.flaggedByRuleTypes],
    ["pending", ["agent_threshold"]],
  );
  const read = await mcp.use(payment, "get_payment", { transactionId: made.id });
  expectStep("the payment as the agent reads it", read.transaction.status, "pending");
  tell("agent", `tried ${dollars(amountCents)} at ${merchant}: held, reads \`pending\``);
  if (asked === null) throw new Error("unreachable: checked above");
  return { made, asked };
}

async function payHeldAndApproved(mcp: AgentClient, owner: Owner) {
  const { made, asked } = await hold(mcp, 9_000, "Conference Inc", "A ticket for the conference");
  const pending = await owner.call(approvals, "GET", "/v1/approvals/pending");
  expectStep(
    "what the owner sees",
    pending.approvals.map(({ id }) => id),
    [asked.id],
  );
  tell("owner", `sees it: "${asked.purpose}", ${dollars(asked.budgetContext.remainingCents)} would be left`);
  const decided = await owner.call(one, "POST", `/v1/approvals/${asked.id}/approve`);
  expectStep("the approval's resolution", decided.approval.resolution, "approved");
  const read = await mcp.use(payment, "get_payment", { transactionId: made.id });
  expectStep("the approved payment", read.transaction.status, "approved");
  tell("owner", "approved it, and it was paid; the agent reads `approved`");
  return { id: made.id, status: "approved" };
}

async function payHeldAndDenied(mcp: AgentClient, owner: Owner) {
  const { made, asked } = await hold(mcp, 6_000, "Gadget World", "A mechanical keyboard");
  const feedback = "We have keyboards in the store room.";
  const decided = await owner.call(one, "POST", `/v1/approvals/${asked.id}/deny`, { feedback });
  expectStep("the denied approval's resolution", decided.approval.resolution, "denied");
  tell("owner", `denied it: "${feedback}"`);
  const { output } = operations.getDenialFeedback;
  const { denials } = await mcp.use(output, "get_denial_feedback", { transactionId: made.id });
  expectStep("the feedback", [denials[0]?.denialCode, denials[0]?.feedback], ["APPROVAL_DENIED", feedback]);
  tell("agent", `read the feedback: "${denials[0]?.feedback ?? ""}"`);
  return { id: made.id, status: "denied" };
}

async function payLeftAlone(stage: Stage, mcp: AgentClient, apiKey: string) {
  const address = await stage.impatientServer(IMPATIENT_WINDOW_SECONDS);
  const impatient = await AgentClient.connect(`${address}/mcp`, apiKey);
  const { made } = await hold(impatient, 5_500, "Slow Decisions Ltd", "Something that nobody looks at");
  await impatient.close();
  const deadline = Date.now() + EXPIRY_WAIT_MS;
  const read = async () => (await mcp.use(payment, "get_payment", { transactionId: made.id })).transaction;
  let seen = await read();
  while (seen.status === "pending" && Date.now() < deadline) {
    await delay(EXPIRY_POLL_MS);
    seen = await read();
  }
  expectStep("a payment nobody decided", [seen.status, seen.denialCode], ["expired", "APPROVAL_EXPIRED"]);
  tell(
    "nobody",
    `decided within ${IMPATIENT_WINDOW_SECONDS} s (a second server, whose approval window is short): expired`,
  );
  return { id: made.id, status: "expired" };
}

async function payFromWallet(stage: Stage, mcp: AgentClient, owner: Owner, agentId: string) {
  const { output: walletOf } = operations.getWallet;
  const wallet = await mcp.use(walletOf, "get_wallet");
  const { output: funded } = operations.fundAgentInSandbox;
  const path = `/v1/sandbox/agents/${agentId}/fund`;
  const { balanceCents } = await owner.call(funded, "POST", path, { amountCents: WALLET_CENTS });
  expectStep("the funded wallet's balance", balanceCents, wallet.balanceCents + WALLET_CENTS);
  tell("owner", `put ${dollars(WALLET_CENTS)} of test money into the agent's wallet ${wallet.address}`);

  const { transaction: sent } = await mcp.send(madePayment, SENT_CENTS, SUPPLIER, "Data, by the row");
  expectStep("a wallet payment", [sent.status, sent.chainCaip2], ["approved", wallet.chainCaip2]);
  const hash = sent.onChainTxHash ?? "";
  tell("agent", `sent ${dollars(SENT_CENTS)} from its wallet: ${sent.status}, transaction ${hash}`);

  const spent = await spentOnChain(stage.chainUrl, hash);
  const expected = [wallet.address, SUPPLIER, String(SENT_CENTS * UNITS_PER_CENT)];
  expectStep("what the chain says", [spent.wallet, spent.to, String(spent.amount)], expected);
  tell("chain", `block ${spent.blockNumber}: ${wallet.address} spent ${dollars(SENT_CENTS)}, to ${SUPPLIER}`);
  return { id: sent.id, status: "approved" };
}

async function payOverBudget(mcp: AgentClient) {
  const { transaction: denied } = await mcp.pay(madePayment, 15_000, "Big Spender", "More than is left");
  const left = BUDGET_CENTS - 1_200 - 9_000 - SENT_CENTS;
  expectStep(
    "a payment over the budget",
    [denied.status, denied.denialCode, denied.denialDetails?.remaining],
    ["denied", "BUDGET_EXCEEDED", left],
  );
  tell("agent", `tried ${dollars(15_000)}: denied, ${dollars(left)} is left`);
  return { id: denied.id, status: "denied" };
}

const short = (merchant: string): string =>
  merchant.startsWith("0x") ? `${merchant.slice(0, 8)}…${merchant.slice(-4)}` : merchant;

async function readTransactions(
  owner: Owner,
  agentId: string,
  paid: readonly { id: string; status: string }[],
) {
  const listed = await owner.call(transactions, "GET", `/v1/transactions?agent_id=${agentId}`);
  const seen = listed.transactions.map(({ id, status }) => ({ id, status }));
  expectStep("the transactions, newest first", seen, paid.toReversed());
  tell("owner", "lists the transactions, newest first:");
  for (const { amountCents, createdAt, denialCode, merchant, status } of listed.transactions) {
    const why = denialCode === null ? "" : ` (${denialCode})`;
    tell(
      "",
      `  ${createdAt}  ${dollars(amountCents).padStart(11)}  ${short(merchant).padEnd(18)} ${status}${why}`,
    );
  }
}
