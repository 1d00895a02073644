import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { erc20Abi, getAddress, isHash } from "viem";
import { Random } from "../../../lab/random.ts";
import { reconcile } from "../../../server/admin/reconcile/reconcile.ts";
import { reconciledText } from "../../../server/admin/reconcile/text.ts";
import { sandboxTokenDeployment } from "../../../src/chain/contracts.ts";
import { type AgentDocument, COLLECTIONS } from "../../../src/store/documents.ts";
import { ContractApi, successOf } from "../../support/contract-api.ts";
import { type ServiceProcess, until } from "../../support/process.ts";
import { gate } from "../../workflows/support/doubles.ts";
import { facilitatorOn, openShop, type Shop } from "../../x402/shops.ts";
import { seed } from "../../support/seed.ts";
import { purchasePointsOf, restartCrashing, startCrashing } from "../support/crashing.ts";
import { armPurchase, purchaseHeldLine, type PurchasePoint } from "../support/purchase-points.ts";
import { Stage } from "../support/stage.ts";

const FUNDED_CENTS = 1_000;
/** One cent, in the token's units. */
const UNITS = 10_000n;
const HELD_MS = 60_000;
/** A request to a shop that died with its process blocks the next one for 15 s; the ledger sweeps every 10 s. */
const PAID_MS = 120_000;
const PATIENCE_MS = 30_000;

/** Small, so that every second purchase needs a top-up. */
export const KILLED_PURCHASES_ENV = { POCKET_FLOAT_CENTS: "2", X402_ALLOW_CIDRS: "127.0.0.0/8" };

/** The shop holds a paid request: verified and not settled, or settled and not answered. */
type ShopPoint = "verified" | "settled";
export type KillPoint = PurchasePoint | ShopPoint;

const first = (collection: string, side: PurchasePoint["side"]): PurchasePoint => ({
  collection,
  write: 1,
  side,
});

/** Between decide, store, sign, send and settle. */
export const STEPS: readonly KillPoint[] = [
  first(COLLECTIONS.purchases, "before"),
  first(COLLECTIONS.pocketAuthorizations, "before"),
  first(COLLECTIONS.pocketAuthorizations, "after"),
  "verified",
  "settled",
  first(COLLECTIONS.purchaseAnswers, "before"),
];

/** Writes of a purchase with a top-up: about that many. */
const WRITES_MAX = 14;

export const randomPoint = (random: Random): KillPoint =>
  random.chance(0.2)
    ? random.pick(["verified", "settled"] as const)
    : {
        collection: null,
        write: random.between(1, WRITES_MAX),
        side: random.pick(["before", "after"] as const),
      };

type Agent = Awaited<ReturnType<Stage["tenant"]["createAgent"]>>;

interface Purchase {
  readonly agent: Agent;
  readonly point: KillPoint;
  readonly shop: Shop;
  readonly body: Readonly<Record<string, unknown>>;
  /** Resolves to where the purchase stands: held, or answered. */
  readonly stands: Promise<string>;
  letGo(): void;
}

/** Purchases that are each held at a step when the service is killed, by agents of one organization. */
export function purchasesAtHand() {
  let stage: Stage;
  let agents: readonly Agent[] = [];
  let purchases: readonly Purchase[] = [];
  let rpcUrl = "";
  const paidUnits = new Map<string, bigint>();

  const api = () => new ContractApi(stage.service.runtime.baseUrl);

  async function begin(service: ServiceProcess, count: number): Promise<void> {
    stage = await Stage.on(service);
    rpcUrl = service.env["EVM_RPC_URL"] ?? "";
    agents = await Promise.all(Array.from({ length: count }, () => stage.tenant.createAgent()));
    const body = { amountCents: FUNDED_CENTS };
    for (const { agent } of agents)
      await api().ok("fundAgentInSandbox", 200, { token: stage.tenant.token, id: agent.id, body });
  }

  /** Buys at each point, one agent each, until all stand. */
  async function buy(points: readonly KillPoint[]): Promise<readonly string[]> {
    purchases = await Promise.all(points.map((point, at) => opened(agents[at], point)));
    return Promise.all(purchases.map(({ stands }) => stands));
  }

  async function opened(agent: Agent | undefined, point: KillPoint): Promise<Purchase> {
    if (agent === undefined) throw new Error("there is no agent for it");
    const { id } = agent.agent;
    const [reached, goOn] = [gate(), gate()];
    const stop = async (here: ShopPoint): Promise<void> => {
      if (here !== point) return;
      reached.open();
      await goOn.opened;
    };
    const shop = await openShop({
      rpcUrl,
      token: await tokenOf(id),
      units: String(UNITS),
      deliver: (_request, response) => void stop("verified").then(() => response.send("goods")),
      decorate: (facilitator) => ({
        ...facilitator,
        async settle(payload, requirements) {
          const settled = await facilitator.settle(payload, requirements);
          await stop("settled");
          return settled;
        },
      }),
    });
    if (typeof point !== "string") await armPurchase(purchasePointsOf(stage.service), id, point);
    const body = {
      url: `${shop.url}/paid/goods`,
      maxAmountCents: 5,
      purpose: "a test",
      idempotencyKey: randomUUID(),
    };
    const answer = api()
      .call("payX402Request", { token: agent.apiKey, body })
      .then(
        ({ status }) => `answered ${String(status)}`,
        () => "broken off",
      );
    const isHeld =
      typeof point === "string"
        ? reached.opened.then(() => point)
        : until(`${id} is held`, HELD_MS, () => heldLine(id, point)).catch(() => "not held");
    return { agent, point, shop, body, stands: Promise.race([isHeld, answer]), letGo: () => goOn.open() };
  }

  function heldLine(agentId: string, point: PurchasePoint): string | null {
    const line = purchaseHeldLine(agentId, point);
    return stage.service.child.stdout.split("\n").find((each) => each.startsWith(line)) ?? null;
  }

  const tokenOf = (agentId: string) =>
    stage.tenant.withDatabase(async (db) => {
      const agent = await db.collection<AgentDocument>(COLLECTIONS.agents).findOne({ _id: agentId });
      return sandboxTokenDeployment(getAddress(agent?.wallet?.spender ?? "")).address;
    });

  /** Once the service is back: asks again by the same keys, until each is paid, once. */
  async function meet(): Promise<void> {
    await stage.meet();
    for (const purchase of purchases) purchase.letGo();
    await Promise.all(purchases.map((purchase) => expectPaidOnce(purchase)));
  }

  async function expectPaidOnce({ agent, body, point, shop }: Purchase): Promise<void> {
    const transaction = await until(`${agent.agent.id} has paid`, PAID_MS, async () => {
      const { status, ...answer } = await api().call("payX402Request", { token: agent.apiKey, body });
      if (status !== 200 && status !== 201)
        throw new Error(`${String(status)} ${JSON.stringify(answer.body)}`);
      const { transaction: known } = successOf("payX402Request", answer.body);
      return known?.status === "pending" ? null : known;
    });
    expect(transaction, `killed ${JSON.stringify(point)}`).to.include({ status: "approved" });
    expect(isHash(transaction?.onChainTxHash ?? "")).to.equal(true);
    const { client } = await facilitatorOn(rpcUrl);
    const read = { address: shop.facts.token, abi: erc20Abi, functionName: "balanceOf" } as const;
    expect(await client.readContract({ ...read, args: [shop.payTo] }), "the shop was paid").to.equal(UNITS);
    paidUnits.set(agent.agent.id, (paidUnits.get(agent.agent.id) ?? 0n) + UNITS);
    await shop.close();
  }

  /** Ledger, records, wallets, pockets and chain agree to the cent. */
  async function expectBooksToAgree(): Promise<void> {
    for (const { agent } of agents) {
      const spentCents = Number((paidUnits.get(agent.id) ?? 0n) / UNITS);
      await stage.tenant.expectTotals(agent.id, { spentCents, reservedCents: 0 }, PAID_MS);
    }
    const result = await reconcile(stage.service.env, {
      organizationId: stage.tenant.organization.organizationId,
      repair: false,
      patienceMs: PATIENCE_MS,
      onProgress: () => undefined,
    });
    expect(result.differences, reconciledText(result)).to.deep.equal([]);
    expect(result.notes).to.deep.equal([]);
    expect(result.payments).to.equal(
      [...paidUnits.values()].reduce((sum, each) => sum + Number(each / UNITS), 0),
    );
  }

  const tests = () =>
    describe("with purchases", () => {
      it("between decide, store, sign, send and settle: each is paid once, and the books agree", async () => {
        await meet();
        await expectBooksToAgree();
      });
    });

  return {
    begin,
    buy,
    meet,
    expectBooksToAgree,
    tests,
    close: () => Promise.all(purchases.map(({ shop }) => shop.close().catch(() => undefined))),
  };
}

/** Kills of the long run; at each one so many purchases are under way. */
const KILLS = 50;
const AT_ONCE = 5;

/** Kills a service while purchases are each at a random step, and restarts it, many times. */
export function purchasesKilledAgainAndAgain(): void {
  let service: ServiceProcess;
  const purchases = purchasesAtHand();
  before(async () => {
    service = await startCrashing({ env: KILLED_PURCHASES_ENV, engines: "shared" });
    await purchases.begin(service, AT_ONCE);
  });
  after(() => service?.dispose());

  it("a purchase that is killed at a random step is paid once, and the books agree", async function () {
    this.timeout(0);
    const random = new Random(seed).fork("killed purchases");
    const stood = new Map<string, number>();
    for (let kill = 0; kill < KILLS; kill += 1) {
      const points = Array.from({ length: AT_ONCE }, () => randomPoint(random));
      for (const where of await purchases.buy(points)) {
        const step = where.replace(/ of [\w-]+/, "");
        stood.set(step, (stood.get(step) ?? 0) + 1);
      }
      await service.killMain();
      await restartCrashing(service);
      await purchases.meet();
    }
    await purchases.expectBooksToAgree();
    const steps = JSON.stringify(
      Object.fromEntries([...stood].toSorted(([one], [other]) => one.localeCompare(other))),
    );
    process.stdout.write(`    ${String(KILLS)} kills of ${String(AT_ONCE)} purchases each: ${steps}\n`);
  });
}
