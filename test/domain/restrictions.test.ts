import { expect } from "chai";
import * as fc from "fast-check";
import {
  forbiddenBy,
  type Forbidden,
  NO_RESTRICTIONS,
  readyRestrictions,
  RESTRICTED_LEVELS,
  type RestrictedLevel,
  type Restrictions,
} from "../../src/domain/rules/restrictions.ts";
import { comparedPayment, type RuledPayment } from "../../src/domain/rules/checks.ts";
import { seed } from "../support/seed.ts";
import { judgeRestricted, restrictedPayments, restrictionsDomain } from "./restrictions-model.ts";
import { TestAccount } from "./support/account.ts";
import { human, profile } from "./support/actor.ts";

const PAYMENT: RuledPayment = { rail: "card", recipient: "Shop", amountMc: 1_000, merchantCategory: "5734" };

type Lists = Partial<Restrictions>;

function judged(levels: Partial<Record<RestrictedLevel, Lists>>, change: Partial<RuledPayment> = {}) {
  const ready = (lists: Lists | undefined) =>
    lists === undefined ? undefined : readyRestrictions({ ...NO_RESTRICTIONS, ...lists });
  const { agent, project, team } = levels;
  const all = { agent: ready(agent), team: ready(team), project: ready(project) };
  return forbiddenBy(all, comparedPayment({ ...PAYMENT, ...change }));
}

const only = (...names: string[]): Lists => ({ recipients: { only: names, never: [] } });
const never = (...names: string[]): Lists => ({ recipients: { only: null, never: names } });
const categories = (change: Partial<Restrictions["merchantCategories"]>): Lists => ({
  merchantCategories: { ...NO_RESTRICTIONS.merchantCategories, ...change },
});

/** Lists of each kind that forbid the payment, and lists that would allow it. */
const KINDS: readonly (readonly [
  code: Forbidden["code"],
  forbids: Lists,
  allows: Lists,
  by: "only" | "never",
])[] = [
  ["RAIL_NOT_ALLOWED", { rails: { only: ["wallet"] } }, { rails: { only: ["card", "wallet"] } }, "only"],
  ["RECIPIENT_NOT_ALLOWED", only("Other"), only("Shop", "Other"), "only"],
  ["RECIPIENT_NOT_ALLOWED", never("Shop"), never("Other"), "never"],
  ["MERCHANT_CATEGORY_NOT_ALLOWED", categories({ only: ["1111"] }), categories({ only: ["5734"] }), "only"],
  [
    "MERCHANT_CATEGORY_NOT_ALLOWED",
    categories({ never: ["5734"] }),
    categories({ never: ["1111"] }),
    "never",
  ],
];

describe("restrictions", () => {
  for (const [code, forbids, allows, by] of KINDS) {
    it(`${code}: whichever levels forbid, the first is named (${by})`, () => {
      for (let bits = 0; bits < 2 ** RESTRICTED_LEVELS.length; bits += 1) {
        const forbidding = RESTRICTED_LEVELS.filter((_level, place) => (bits & (1 << place)) !== 0);
        const lists = (rest: Lists | undefined) =>
          Object.fromEntries(
            RESTRICTED_LEVELS.map((level) => [level, forbidding.includes(level) ? forbids : rest]),
          );
        const expected = forbidding[0] === undefined ? null : { code, level: forbidding[0] };
        expect(judged(lists(allows)), `${forbidding.join()}, others allow it`).to.deep.equal(expected);
        expect(judged(lists(undefined)), `${forbidding.join()}, others have none`).to.deep.equal(expected);
      }
    });
  }

  it("random lists of three levels forbid what a plain model says", () => {
    const plain = fc.property(restrictedPayments, (each) => judgeRestricted(each, restrictionsDomain));
    fc.assert(plain, { seed, numRuns: 500 });
  });

  it("never overrides only; levels whose lists share nothing allow nothing", () => {
    const both = { recipients: { only: ["Shop"], never: ["Shop"] } };
    expect(judged({ agent: both })?.code).to.equal("RECIPIENT_NOT_ALLOWED");
    const apart = { agent: only("Shop"), team: only("Other") };
    expect(judged(apart)).to.deep.equal({ code: "RECIPIENT_NOT_ALLOWED", level: "team" });
    expect(judged(apart, { recipient: "Other" })?.level).to.equal("agent");
  });

  it("the rail comes first, then recipient and category, whichever level forbids", () => {
    const [rail, recipient, , category] = KINDS.map(([, forbids]) => forbids);
    const levels = { agent: category ?? {}, team: recipient ?? {}, project: rail ?? {} };
    expect(judged(levels)).to.deep.equal({ code: "RAIL_NOT_ALLOWED", level: "project" });
    const { project: _free, ...rest } = levels;
    expect(judged(rest)).to.deep.equal({ code: "RECIPIENT_NOT_ALLOWED", level: "team" });
  });

  it("names are compared as rules compare them", () => {
    expect(judged({ team: never("  sHOP ") })?.code).to.equal("RECIPIENT_NOT_ALLOWED");
    expect(judged({ team: only("ｓｈｏｐ") })).to.equal(null);
    expect(judged({ team: never("shops") })).to.equal(null);
  });

  it("a purchase is allowed by its host or its payee, and denied by either; no port means all", () => {
    const bought = { recipient: "0xAbc", resource: "https://api.example.com:8443/x" } as const;
    const hosts = ["host:API.example.com", "host:api.example.com:8443", "0xABC"];
    for (const name of hosts) {
      expect(judged({ agent: only(name) }, bought), name).to.equal(null);
      expect(judged({ agent: never(name) }, bought)?.code, name).to.equal("RECIPIENT_NOT_ALLOWED");
    }
    expect(judged({ agent: only("host:api.example.com:443") }, bought)?.code).to.equal(
      "RECIPIENT_NOT_ALLOWED",
    );
    const refused = { recipients: { only: [hosts[0] ?? ""], never: ["0xabc"] } };
    expect(judged({ agent: refused }, bought)?.code).to.equal("RECIPIENT_NOT_ALLOWED");
  });

  it("a payment without a category is denied where one level says so, whatever is listed", () => {
    const uncoded = { merchantCategory: null };
    expect(judged({ team: categories({ only: ["1111"] }) }, uncoded)).to.equal(null);
    const levels = { agent: categories({}), project: categories({ uncoded: "deny" }) };
    expect(judged(levels, uncoded)).to.deep.equal({
      code: "MERCHANT_CATEGORY_NOT_ALLOWED",
      level: "project",
    });
    expect(judged(levels)).to.equal(null);
  });
});

const FORBIDDEN = { code: "RECIPIENT_NOT_ALLOWED", level: "team" } as const;
const VERSIONS = { project: null, team: 4, agent: 3 };

/** A payment on hold, and its approval. */
function held() {
  const account = new TestAccount({ autoApprovalThresholdCents: 0 });
  const { transactionId } = account.pay(100).request;
  const approve = { kind: "approve", transactionId, by: human, proof: "" } as const;
  return { account, approve };
}

describe("restrictions in the ledger", () => {
  it("an approval is judged again: forbidden by then, it has failed and holds nothing", () => {
    const { account, approve } = held();
    const { payment } = account.as("payment", account.do({ ...approve, forbidden: FORBIDDEN }));
    expect(payment).to.include({ status: "failed", phase: "done" });
    expect(payment.denial).to.deep.equal({
      code: "RECIPIENT_NOT_ALLOWED",
      reason: "The team's restrictions do not allow this recipient.",
      details: null,
    });
    expect(payment.approval?.resolution).to.equal("failed");
    expect(account.state.usage.reservedMc).to.equal(0);
  });

  for (const level of ["project", "team", "agent"] as const) {
    it(`no payment and no approval is judged by restrictions older than the ${level}'s newest`, () => {
      const { account, approve } = held();
      const teamId = level === "project" ? null : profile.teamId;
      if (level === "agent") account.do({ kind: "follow_restrictions", version: 3 });
      else account.judge({ kind: "follow_rules", teamId, version: 3 });
      const older = { project: 3, team: 3, agent: 3, [level]: 2 };
      expect(account.do({ ...approve, rulesVersions: older }).kind).to.equal("stale_rules");
      expect(account.payReply(account.request(1, { rulesVersions: older })).kind).to.equal("stale_rules");
      const newest = { ...older, [level]: 3 };
      expect(account.do({ ...approve, rulesVersions: newest }).kind).to.equal("payment");
      expect(account.payReply(account.request(1, { rulesVersions: newest })).kind).to.equal("decided");
    });
  }

  it("a payment by newer restrictions than the ledger knows raises its versions, which only grow", () => {
    const account = new TestAccount({});
    expect(account.payReply(account.request(1, { rulesVersions: VERSIONS })).kind).to.equal("decided");
    account.do({ kind: "follow_restrictions", version: 2 });
    for (const older of [
      { ...VERSIONS, agent: 2 },
      { ...VERSIONS, team: 3 },
    ]) {
      const reply = account.payReply(account.request(1, { rulesVersions: older }));
      expect(reply.kind).to.equal("stale_rules");
    }
    expect(account.payReply(account.request(1, { rulesVersions: VERSIONS })).kind).to.equal("decided");
  });
});
