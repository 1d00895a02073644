import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { madePayment, payment } from "../../src/contract/records.ts";
import { operations } from "../../src/contract/registry.ts";
import { TotpCodes } from "../../test/support/totp.ts";
import type { AgentClient, Owner } from "./clients.ts";
import { dollars, expectStep, StepDiffers, tell } from "./stage.ts";

const ASKED_CENTS = 1_800;
/** The merchant ships less than was ordered. */
const CAPTURED_CENTS = 1_740;
const BOOKED_MS = 20_000;
const POLL_MS = 250;

const cards = z.object({
  data: z.array(z.object({ id: z.string(), metadata: z.record(z.string(), z.string()) })),
});
const authorization = z.object({ id: z.string(), approved: z.boolean() });

/** The card network's side: what merchants do, and where the network asks. */
class Network {
  readonly key = `rk_test_${randomBytes(12).toString("hex")}`;
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  async call<T extends z.ZodType>(
    schema: T,
    path: string,
    fields: Readonly<Record<string, string>> | null = null,
  ): Promise<z.output<T>> {
    const body = fields === null ? {} : { method: "POST", body: new URLSearchParams(fields) };
    const headers = { authorization: `Bearer ${this.key}` };
    const response = await fetch(`${this.#url}${path}`, { headers, ...body });
    if (!response.ok) throw new StepDiffers(`${path}: ${response.status} ${await response.text()}`);
    return schema.parse(await response.json());
  }

  async charge(card: string, amountCents: number) {
    const fields = { card, amount: String(amountCents), "merchant_data[name]": "Paper & Pens" };
    return this.call(authorization, "/v1/test_helpers/issuing/authorizations", fields);
  }
}

/** An owner connects a card network, and an agent's payment gets a card of its own, which the merchant charges. */
export async function payWithCard(networkUrl: string, owner: Owner, mcp: AgentClient): Promise<void> {
  const network = new Network(networkUrl);
  await connect(network, owner);

  const { card, transaction: asked } = await mcp.pay(madePayment, ASKED_CENTS, "Paper & Pens", "Paper");
  const { id, stage } = asked;
  expectStep(`a payment of ${dollars(ASKED_CENTS)}`, stage, "armed");
  tell("agent", `asked for ${dollars(ASKED_CENTS)}: its card, which ends in ${card?.last4 ?? ""}, is ready`);

  const { data } = await network.call(cards, "/v1/issuing/cards");
  const own = data.find(({ metadata }) => metadata["transaction"] === id);
  if (own === undefined) throw new StepDiffers("the network has no card for the payment");
  const over = await network.charge(own.id, ASKED_CENTS + 1);
  expectStep("a charge of a cent too much", over.approved, false);
  const charged = await network.charge(own.id, ASKED_CENTS);
  expectStep("the charge", charged.approved, true);
  tell("merchant", `charged the card; the network asked the service, which refused one cent more`);
  const path = `/v1/test_helpers/issuing/authorizations/${charged.id}/capture`;
  await network.call(z.unknown(), path, { capture_amount: String(CAPTURED_CENTS) });

  const booked = await untilCaptured(mcp, id);
  const { amounts, status } = booked.transaction;
  expectStep("the payment", [status, amounts.capturedCents], ["approved", CAPTURED_CENTS]);
  tell("agent", `reads \`approved\`: ${dollars(CAPTURED_CENTS)} were captured, the rest is free again`);
}

async function connect(network: Network, owner: Owner): Promise<void> {
  const { enrollTotp, connectCardIssuer, checkCardIssuer } = operations;
  const { secret } = await owner.call(enrollTotp.output, "POST", "/v1/auth/totp", {});
  const codes = new TotpCodes(secret);
  await owner.call(z.unknown(), "POST", "/v1/auth/totp/confirm", { code: await codes.next() });
  const proof = { method: "totp", code: await codes.next() };
  await owner.call(z.unknown(), "POST", "/v1/auth/step-up", proof);
  tell("owner", "set up one-time codes, and confirmed one for what follows");

  const rail = "/v1/organization/rails/simulator";
  const { connection } = await owner.call(connectCardIssuer.output, "PUT", rail, { apiKey: network.key });
  const authorizationSecret = `whsec_${randomBytes(12).toString("hex")}`;
  const { authorizationUrl } = connection;
  await network.call(z.unknown(), "/simulator/settings", { authorizationUrl, authorizationSecret });
  await owner.call(z.unknown(), "PUT", rail, { authorizationSecret });
  const { isWorking } = await owner.call(checkCardIssuer.output, "POST", `${rail}/check`);
  expectStep("the check of the card network", isWorking, true);
  tell("owner", "connected a simulated card network, and checked that it asks the service");
}

/** The payment once the network's books have reached it. */
async function untilCaptured(mcp: AgentClient, transactionId: string) {
  const deadline = Date.now() + BOOKED_MS;
  for (;;) {
    const read = await mcp.use(payment, "get_payment", { transactionId });
    if (read.transaction.amounts.capturedCents > 0 || Date.now() > deadline) return read;
    await delay(POLL_MS);
  }
}
