import { mcOf } from "../../src/domain/money.ts";
import { expect } from "chai";
import { windowBounds } from "../../src/domain/ledger/calendar.ts";
import { checkCaps, remainingCents } from "../../src/domain/ledger/caps.ts";
import type { Totals } from "../../src/domain/ledger/state.ts";
import { contentOf, KEY, TestAccount } from "./support/account.ts";
import { APPROVAL_WINDOW_SECONDS, openPolicy, profile } from "./support/actor.ts";

const MAX_CENTS = 1_000_000_000_000;
const { teamId } = profile;

type Replaced = ReturnType<TestAccount["judge"]>;

/** A ledger with caps at both levels (null: none), and accounts in two teams. */
function capped(projectCents: number | null, teamCents: number | null = null): TestAccount {
  const account = new TestAccount({ budgetCents: 2 * MAX_CENTS });
  account.open("agent-2", "team-2", { budgetCents: 2 * MAX_CENTS });
  account.cap(projectCents, teamCents);
  return account;
}

/** The second agent pays; its team has no cap of its own. */
function payElsewhere(account: TestAccount, amountCents: number): void {
  const request = account.request(amountCents);
  const pay = { keyId: KEY, approvalWindowSeconds: APPROVAL_WINDOW_SECONDS, recordsCheckedThrough: 0 };
  account.as("decided", account.judge({ kind: "pay", agentId: "agent-2", request, ...pay }));
}

const replaceTeam = (account: TestAccount, version: number, budgetCents: number, id = teamId): Replaced =>
  account.judge({
    kind: "replace_team",
    teamId: id,
    version,
    capCents: 500,
    agents: [{ agentId: profile.agentId, budgetCents }],
  });

const levels = ({ ledger }: TestAccount): readonly Totals[] => [
  ledger.project.totals,
  ledger.teams.get(teamId)?.totals ?? { spentMc: -1, reservedMc: -1 },
];

describe("caps: the exact limits", () => {
  /** [cap, used, asked, own hold, whether it fits] */
  const rows: readonly (readonly [number, number, number, number, boolean])[] = [
    [0, 0, 1, 0, false],
    [0, 0, 0, 0, true],
    [1, 0, 1, 0, true],
    [1, 0, 2, 0, false],
    [1_000, 600, 399, 0, true],
    [1_000, 600, 400, 0, true],
    [1_000, 600, 401, 0, false],
    [1_000, 1_000, 1, 0, false],
    [1_000, 1_500, 1, 0, false],
    [1_000, 1_000, 400, 400, true],
    [999, 1_000, 400, 400, false],
    [400, 400, 400, 400, true],
    [399, 400, 400, 400, false],
    [MAX_CENTS, 0, MAX_CENTS, 0, true],
    [MAX_CENTS, 1, MAX_CENTS, 0, false],
    [MAX_CENTS, 1, MAX_CENTS - 1, 0, true],
  ];
  for (const level of ["team", "project"] as const) {
    for (const [cap, used, cents, own, fits] of rows) {
      const what = `${cents} of ${cap} with ${used} used${own > 0 ? ", its own among them" : ""}`;
      it(`a ${level}'s cap: ${what} ${fits ? "fits" : "does not fit"}`, () => {
        const account = capped(null);
        if (used > own) account.paid(used - own);
        if (own > 0) account.pay(own);
        if (level === "team") account.cap(null, cap);
        else account.cap(cap);
        const denial = checkCaps(
          account.ledger,
          account.state,
          mcOf(cents),
          windowBounds(account.ledger.calendar, account.now),
          { amountMc: mcOf(own) },
        );
        expect(denial === null).to.equal(fits);
        if (own === 0) expect(account.pay(cents).denial).to.deep.equal(denial);
        if (denial === null) return;
        expect(denial.code).to.equal(level === "team" ? "TEAM_CAP_EXCEEDED" : "PROJECT_CAP_EXCEEDED");
        const remaining = Math.max(0, cap - (used - own));
        expect(denial.details).to.deep.equal({ limit: cap, remaining, resetsAt: null });
      });
    }
  }

  it("both exceeded: the team's is named; another team's use counts for the project only", () => {
    const account = capped(100, 100);
    payElsewhere(account, 60);
    expect(account.pay(101).denial?.code).to.equal("TEAM_CAP_EXCEEDED");
    expect(account.pay(41).denial?.code).to.equal("PROJECT_CAP_EXCEEDED");
    expect(account.pay(40).denial).to.equal(null);
  });

  it("what is left of a cap is what would still fit, never less than nothing, null without one", () => {
    const left = [100, 90, 10, null].map((capCents) =>
      remainingCents({ capCents, version: 1 }, { spentMc: mcOf(60), reservedMc: mcOf(30) }),
    );
    expect(left).to.deep.equal([10, 0, 0, null]);
  });
});

describe("caps: what counts under them", () => {
  it("a cap that is set later counts what was spent and held before there was one", () => {
    const account = new TestAccount();
    account.paid(60);
    account.pay(30);
    account.cap(100, 95);
    expect(account.pay(6).denial?.details).to.deep.equal({ limit: 95, remaining: 5, resetsAt: null });
    account.cap(100);
    expect(account.pay(11).denial?.details).to.deep.equal({ limit: 100, remaining: 10, resetsAt: null });
    expect(account.pay(10).denial).to.equal(null);
  });

  it("what a cap refused holds and counts nothing, at any level", () => {
    const account = capped(100);
    const before = [account.totals(), levels(account)];
    account.pay(101);
    expect([account.totals(), levels(account)]).to.deep.equal(before);
  });

  it("what is held moves to what is spent, or is released, at all levels at once", () => {
    const account = capped(1_000, 500);
    const both = (spentCents: number, reservedCents: number) => {
      const totals = { spentMc: mcOf(spentCents), reservedMc: mcOf(reservedCents) };
      expect(levels(account)).to.deep.equal([totals, totals]);
    };
    const [first, second] = [account.pay(100), account.pay(50)];
    both(0, 150);
    account.settle(first.request.transactionId, { status: "settled" });
    both(100, 50);
    account.settle(second.request.transactionId, { status: "failed", code: "CARD_DECLINED", reason: "No." });
    both(100, 0);
    account.network(first.request.transactionId, { creditedMc: mcOf(100) });
    both(0, 0);
  });

  it("what an archived agent has spent stays under the caps, also once its account is gone", () => {
    const account = capped(1_000, 500);
    account.paid(100);
    account.archive();
    const { agentId, revision } = account.state;
    account.judge({ kind: "confirm_records", records: [{ agentId, revision }] });
    expect(account.ledger.accounts.has(agentId)).to.equal(false);
    expect(levels(account)[0]).to.deep.equal({ spentMc: 100_000, reservedMc: 0 });
    expect(levels(account)[1]).to.deep.equal({ spentMc: 100_000, reservedMc: 0 });
  });
});

describe("caps: a budget is replaced whole, in one decision", () => {
  it("a project's: its cap and those of its teams; only what changed raises a team's version", () => {
    const account = capped(100, 50);
    const teams = [
      { teamId, capCents: 50 },
      { teamId: "team-2", capCents: 70 },
    ];
    const reply = account.judge({ kind: "replace_project", version: 2, capCents: 90, teams });
    expect(account.as("replaced", reply)).to.deep.equal({
      kind: "replaced",
      version: 3,
      caps: [
        { teamId: null, cap: { capCents: 90, version: 3 } },
        { teamId: "team-2", cap: { capCents: 70, version: 2 } },
      ],
    });
  });

  it("a team's: its cap and its agents' budgets; only what changed raises a policy's version", () => {
    const account = capped(null);
    expect(replaceTeam(account, 1, 700).kind).to.equal("replaced");
    expect(account.state.policy).to.deep.equal({ ...openPolicy, budgetCents: 700 });
    expect(account.state.policyVersion).to.equal(2);
    expect(replaceTeam(account, 2, 700).kind).to.equal("replaced");
    expect(account.state.policyVersion).to.equal(2);
  });

  it("a stale version changes nothing at all, and says which is current", () => {
    const account = capped(100, 50);
    const before = contentOf(account.ledger);
    const stale = { kind: "replace_project", capCents: 1, teams: [{ teamId, capCents: 1 }] } as const;
    for (const version of [1, 3]) {
      expect(account.judge({ ...stale, version })).to.deep.equal({ kind: "version_conflict", version: 2 });
      expect(replaceTeam(account, version, 1)).to.deep.equal({ kind: "version_conflict", version: 2 });
    }
    expect(contentOf(account.ledger)).to.deep.equal(before);
  });

  it("an agent of another team, an unknown one and an archived one are passed over", () => {
    const account = capped(null);
    const { policyVersion } = account.state;
    replaceTeam(account, 1, 700, "team-2");
    expect(account.state.policyVersion).to.equal(policyVersion);
    account.judge({
      kind: "replace_team",
      teamId,
      version: 1,
      capCents: null,
      agents: [{ agentId: "nobody", budgetCents: 1 }],
    });
    expect(account.ledger.accounts.has("nobody")).to.equal(false);
    account.archive();
    replaceTeam(account, 2, 700);
    expect(account.state.policyVersion).to.equal(policyVersion);
  });

  it("a lowered cap takes nothing back; a raised one lets through what it leaves, to the cent", () => {
    const account = capped(1_000);
    account.paid(600);
    account.cap(100);
    expect(levels(account)[0]).to.deep.equal({ spentMc: 600_000, reservedMc: 0 });
    expect(account.pay(1).denial?.details).to.deep.equal({ limit: 100, remaining: 0, resetsAt: null });
    account.cap(650);
    expect(account.pay(51).denial?.code).to.equal("PROJECT_CAP_EXCEEDED");
    expect(account.pay(50).denial).to.equal(null);
  });

  it("what is in its record is known only for the version that was confirmed", () => {
    const account = capped(100);
    const recorded = () => account.ledger.project.recordedCapVersion;
    const confirm = (version: number) =>
      account.judge({ kind: "confirm_caps", caps: [{ teamId: null, version }] });
    expect(recorded()).to.equal(1);
    confirm(9);
    expect(recorded(), "no more than there is").to.equal(2);
    account.cap(200);
    confirm(2);
    expect(recorded()).to.equal(2);
    confirm(1);
    expect(recorded(), "an older one takes nothing back").to.equal(2);
  });
});
