import { expect } from "chai";
import { startTestService, type TestService } from "../support/service.ts";
import { cardPayment, newWorld, until, type World } from "../support/world.ts";

/** A ledger executes itself what no server has so long after it was decided. */
const SWEEP_SECONDS = 1;

describe("a payment that the ledger executes while its server waits for the rail", () => {
  let service: TestService;
  let world: World;
  /** Called when a card payment is about to be sent. */
  let onSend: (() => Promise<void>) | null = null;
  before(async () => {
    service = await startTestService({
      sweepAfterSeconds: SWEEP_SECONDS,
      decorateEffects: (plain) => {
        const { card } = plain.rails;
        return {
          ...plain,
          rails: {
            ...plain.rails,
            card: {
              capabilities: card.capabilities,
              async send(profile, payment, permit) {
                const noticed = onSend;
                onSend = null;
                await noticed?.();
                return card.send(profile, payment, permit);
              },
              fence: (places) => card.fence(places),
              query: (payment) => card.query(payment),
              settle: (...asked) => card.settle(...asked),
              withhold: (profile, payment) => card.withhold(profile, payment),
              reverse: (payment) => card.reverse(payment),
              balance: (profile) => card.balance(profile),
              detach: (profile) => card.detach(profile),
            },
          },
        };
      },
    });
    world = await newWorld(service);
  });
  after(() => service?.stop());

  it("is answered 201, since this request made it, and is made once", async () => {
    const agent = await world.agent();
    const { id, key: token } = agent;
    const transactions = async () =>
      (await world.api.ok("listTransactions", 200, { token: world.token, query: { agent_id: id } }))
        .transactions;
    onSend = async () => {
      await until("the ledger has executed it", async () => {
        const [swept] = await transactions();
        return swept?.status === "approved" ? true : null;
      });
      throw new Error("no answer");
    };
    const answer = await world.api.call("createPayment", { token, body: cardPayment() });
    expect(answer.status).to.equal(201);
    expect((await transactions()).map(({ status }) => status)).to.deep.equal(["approved"]);
  });
});
