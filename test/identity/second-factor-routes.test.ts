import { generate } from "otplib";
import { expect } from "chai";
import { startTestService, type TestService } from "../support/service.ts";
import { newWorld, times, type World } from "../support/world.ts";

const STEP_SECONDS = 30;

describe("the second factor over HTTP", () => {
  let service: TestService;
  let world: World;
  let aheadMs = 0;
  before(async () => {
    service = await startTestService({ clock: () => new Date(Date.now() + aheadMs) });
  });
  beforeEach(async () => {
    world = await newWorld(service);
  });
  after(() => service.stop());

  /** A code that was not used yet: each is accepted once, so the clock goes on to the next. */
  function freshCode(secret: string): Promise<string> {
    aheadMs += STEP_SECONDS * 1_000;
    return generate({ secret, epoch: (Date.now() + aheadMs) / 1_000 });
  }

  async function wrongCode(secret: string): Promise<string> {
    const right = await generate({ secret, epoch: (Date.now() + aheadMs) / 1_000 });
    return right === "000000" || right === "111111" ? "222222" : right.startsWith("0") ? "111111" : "000000";
  }

  async function enrolled(): Promise<string> {
    const { secret } = await world.api.ok("enrollTotp", 201, { token: world.token });
    const body = { code: await freshCode(secret) };
    const { user } = await world.api.ok("confirmTotp", 200, { token: world.token, body });
    expect(user.secondFactors).to.deep.equal(["totp"]);
    return secret;
  }

  const stepUp = (code: string) => ({ token: world.token, body: { method: "totp", code } });
  const patch = (id: string, version = 1) => ({ token: world.token, id, body: { version, budgetCents: 1 } });

  it("a policy change is STEP_UP_REQUIRED until step-up, and again 5 minutes after it", async () => {
    const { id } = await world.agent();
    await world.api.refused("updateAgentBudgetPolicy", 403, "STEP_UP_REQUIRED", patch(id));
    const secret = await enrolled();
    await world.api.refused("updateAgentBudgetPolicy", 403, "STEP_UP_REQUIRED", patch(id));
    const code = await freshCode(secret);
    const askedAt = Date.now() + aheadMs;
    const { stepUpExpiresAt } = await world.api.ok("stepUp", 200, stepUp(code));
    expect(Date.parse(stepUpExpiresAt) - 300_000).to.be.within(askedAt, Date.now() + aheadMs);
    const me = await world.api.ok("getMe", 200, { token: world.token });
    expect(me.stepUpExpiresAt).to.equal(stepUpExpiresAt);
    const changed = await world.api.ok("updateAgentBudgetPolicy", 200, patch(id));
    expect([changed.budgetCents, changed.version]).to.deep.equal([1, 2]);
    aheadMs += 300_000;
    await world.api.refused("updateAgentBudgetPolicy", 403, "STEP_UP_REQUIRED", patch(id, 2));
    const later = await world.api.ok("getMe", 200, { token: world.token });
    expect(later.stepUpExpiresAt, "an elevation that is over").to.equal(null);
  });

  it("codes are taken with spaces and hyphens, as apps show them, wherever there is a code", async () => {
    const { secret } = await world.api.ok("enrollTotp", 201, { token: world.token });
    const grouped = async (separator: string) => (await freshCode(secret)).replace(/^.../, `$&${separator}`);
    await world.api.ok("confirmTotp", 200, { token: world.token, body: { code: await grouped(" ") } });
    await world.api.ok("stepUp", 200, stepUp(` ${await grouped("-")} `));
    const { email, password } = world.organization;
    await world.api.ok("signIn", 200, { body: { email, password, code: await grouped(" - ") } });
  });

  it("a code is good once, a wrong one is 403, and the sixth try is locked out with a wait", async () => {
    const secret = await enrolled();
    const { email, password } = world.organization;
    await world.api.refused("signIn", 401, "SECOND_FACTOR_REQUIRED", { body: { email, password } });
    const code = await freshCode(secret);
    await world.api.ok("stepUp", 200, stepUp(code));
    await world.api.refused("stepUp", 403, "SECOND_FACTOR_INVALID", stepUp(code));
    const wrong = stepUp(await wrongCode(secret));
    const began = performance.now();
    for (const _try of times(5, (index) => index)) {
      await world.api.refused("stepUp", 403, "SECOND_FACTOR_INVALID", wrong);
    }
    const { retry_after_seconds } = await world.api.refused("stepUp", 403, "SECOND_FACTOR_LOCKED", wrong);
    const tookSeconds = Math.ceil((performance.now() - began) / 1_000);
    expect(retry_after_seconds).to.be.within(900 - tookSeconds, 900);
    const right = stepUp(await freshCode(secret));
    await world.api.refused("stepUp", 403, "SECOND_FACTOR_LOCKED", right);
    const signIn = { body: { email, password, code: await freshCode(secret) } };
    await world.api.refused("signIn", 403, "SECOND_FACTOR_LOCKED", signIn);
  });

  it("enrolling again needs step-up, also to confirm an earlier start; none without a factor", async () => {
    const confirm = { token: world.token, body: { code: "123456" } };
    const toldToEnrol = [
      await world.api.refused("stepUp", 403, "SECOND_FACTOR_INVALID", stepUp("123456")),
      await world.api.refused("confirmTotp", 403, "SECOND_FACTOR_INVALID", confirm),
    ];
    await enrolled();
    const toldToStepUp = await world.api.refused("enrollTotp", 403, "STEP_UP_REQUIRED", {
      token: world.token,
    });
    for (const { message } of toldToEnrol) expect(message).to.include("POST /v1/auth/totp");
    expect(toldToStepUp.message).to.include("POST /v1/auth/step-up");
  });

  it("a code is six digits and a method totp or passkey; anything else is 400", async () => {
    for (const body of [
      {},
      { method: "totp" },
      { method: "sms", code: "123456" },
      { method: "totp", code: "12345" },
      { method: "totp", code: "１２３４５６" },
      { method: "totp", code: 123_456 },
      { method: "totp", code: { $gt: "" } },
      { method: "totp", code: "123456", remember: true },
    ]) {
      await world.api.refused("stepUp", 400, "VALIDATION_FAILED", { token: world.token, body });
    }
  });
});
