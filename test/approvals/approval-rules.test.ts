import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { ANY_OF_MAX, RULES_MAX } from "../../src/contract/approval-rules.ts";
import { elevate, newWorld, tally, times, type World } from "../support/world.ts";
import { codeOf } from "../support/contract-api.ts";
import { someOrAll } from "../support/soak.ts";

const KINDS = [
  { noun: "project", get: "getProjectApprovalRules", set: "setProjectApprovalRules" },
  { noun: "team", get: "getTeamApprovalRules", set: "setTeamApprovalRules" },
] as const;

const above = (amountCents: number, fields: object = {}) => ({
  type: "amount_above",
  params: { amountCents },
  ...fields,
});

/** A rule of each type, as a client would send it. */
const EVERY_TYPE = [
  above(5_000),
  { type: "new_recipient", params: {} },
  { type: "recipient", params: { anyOf: ["Casino", "0x52908400098527886E0F7030069857D2E4169EE7"] } },
  { type: "merchant_category", params: { anyOf: ["7995", "0001"] } },
  { type: "recipient", params: { noneOf: ["Example Supplies"] } },
  { type: "merchant_category", params: { noneOf: ["5734"] } },
  { type: "rail", params: { anyOf: ["wallet"] } },
  { type: "velocity", params: { count: 10, windowSeconds: 2_678_400 } },
  {
    type: "time_window",
    params: { timezone: "Europe/Berlin", days: ["mon", "sun"], from: "22:00", to: "06:00", outside: true },
  },
  { type: "duplicate", params: { windowSeconds: 1 } },
];

const anyOf = (type: string, values: readonly unknown[]) => ({ type, params: { anyOf: values } });

const many = (count: number) => times(count, (index) => `name ${index}`);

/** Both go through the same code. */
for (const { get, noun, set } of someOrAll(KINDS, 1)) {
  describe(`approval rules of a ${noun}`, () => {
    let world: World;
    before(async () => {
      world = await newWorld();
    });

    /** One of its own for a test. */
    async function container(): Promise<string> {
      const request = { token: world.token, body: { name: "Container" } };
      if (noun === "project") return (await world.api.ok("createProject", 201, request)).project.id;
      return (await world.api.ok("createTeam", 201, request)).team.id;
    }

    const put = (id: string, rules: readonly object[], version = 1) =>
      world.api.ok(set, 200, { token: world.token, id, body: { rules, version } });
    const read = (id: string) => world.api.ok(get, 200, { token: world.token, id });

    it("none at version 1; one of each type is answered as set, with ids, enabled, at version 2", async () => {
      const id = await container();
      expect(await read(id)).to.deep.equal({ rules: [], version: 1 });
      const answered = await put(id, EVERY_TYPE);
      const without = answered.rules.map(({ id: ruleId, ...rule }) => {
        expect(ruleId).to.match(/^rule_[0-9A-HJKMNP-TV-Z]{26}$/);
        return rule;
      });
      expect(without).to.deep.equal(EVERY_TYPE.map((rule) => ({ ...rule, enabled: true })));
      expect(new Set(answered.rules.map((rule) => rule.id)).size).to.equal(EVERY_TYPE.length);
      expect(answered.version).to.equal(2);
      expect(await read(id)).to.deep.equal(answered);
    });

    it("a replacement keeps the ids that come back, in its order, deletes the rest, merges nothing", async () => {
      const id = await container();
      const { rules: first } = await put(id, [above(1), above(2, { enabled: false }), above(3)]);
      const [one, two, three] = first;
      const replacement = [{ ...three, enabled: false }, above(4), { ...one, ...above(9) }];
      const { rules, version } = await put(id, replacement, 2);
      expect(version).to.equal(3);
      expect(rules.map((rule) => [rule.id, rule.enabled, rule.params])).to.deep.equal([
        [three?.id, false, { amountCents: 3 }],
        [rules[1]?.id, true, { amountCents: 4 }],
        [one?.id, true, { amountCents: 9 }],
      ]);
      const gone = { token: world.token, id, body: { rules: [two], version: 3 } };
      const { issues } = await world.api.refused(set, 400, "VALIDATION_FAILED", gone);
      expect(issues?.map(({ path }) => path)).to.deep.equal(["rules.0.id"]);
      expect(await put(id, [], 3)).to.deep.equal({ rules: [], version: 4 });
    });

    it("a stale version is 409 and changes nothing; ten at once with the same one: one is done", async () => {
      const id = await container();
      const stale = { token: world.token, id, body: { rules: [above(1)], version: 2 } };
      await world.api.refused(set, 409, "STALE_APPROVAL_RULES", stale);
      expect(await read(id)).to.deep.equal({ rules: [], version: 1 });
      for (const version of [1, 2]) {
        const body = (index: number) => ({ rules: [above(index)], version });
        const request = (index: number) => ({ token: world.token, id, body: body(index) });
        const answers = await Promise.all(times(10, (index) => world.api.call(set, request(index))));
        const outcomes = answers.map((answer) => codeOf(answer) ?? answer.status);
        expect(tally(outcomes)).to.deep.equal({ "200": 1, STALE_APPROVAL_RULES: 9 });
        const done = answers.find(({ status }) => status === 200)?.body;
        expect(await read(id)).to.deep.equal(done);
      }
    });

    it("refusals come in order: shape, archived, stale, unknown rule", async () => {
      const id = await container();
      const unknown = { ...above(1), id: "rule_01ARZ3NDEKTSV4RRFFQ69G5FAV" };
      const send = (rules: readonly object[], version: number) => ({
        token: world.token,
        id,
        body: { rules, version },
      });
      await world.api.refused(set, 409, "STALE_APPROVAL_RULES", send([unknown], 7));
      await world.api.refused(set, 400, "VALIDATION_FAILED", send([unknown], 1));
      await elevate(world);
      const archive = noun === "project" ? "archiveProject" : "archiveTeam";
      await world.api.ok(archive, 200, { token: world.token, id });
      await world.api.refused(set, 409, "CONTAINER_ARCHIVED", send([unknown], 7));
      await world.api.refused(set, 400, "VALIDATION_FAILED", send([above(-1)], 7));
      expect(await read(id)).to.deep.equal({ rules: [], version: 1 });
      await world.api.refused(set, 404, "NOT_FOUND", { ...send([unknown], 7), id: randomUUID() });
    });

    const window = { timezone: "UTC", days: ["mon"], from: "08:00", to: "18:00" };
    const timed = (change: object) => ({ type: "time_window", params: { ...window, ...change } });
    const bad: readonly [string, unknown, string][] = [
      ["a type that there is not", { type: "weather", params: {} }, "rules.0.type"],
      ["no params", { type: "new_recipient" }, "rules.0.params"],
      ["a field that there is not", above(1, { note: "x" }), "rules.0.note"],
      [
        "a parameter of another type",
        { type: "velocity", params: { amountCents: 1, count: 1, windowSeconds: 1 } },
        "rules.0.params.amountCents",
      ],
      [
        "a parameter that there is not",
        { type: "new_recipient", params: { since: 1 } },
        "rules.0.params.since",
      ],
      ["a missing parameter", { type: "velocity", params: { count: 1 } }, "rules.0.params.windowSeconds"],
      ["a negative amount", above(-1), "rules.0.params.amountCents"],
      ["half a cent", above(0.5), "rules.0.params.amountCents"],
      ["enabled that is no boolean", above(1, { enabled: "yes" }), "rules.0.enabled"],
      ["an id that is none", above(1, { id: "x" }), "rules.0.id"],
      ...["recipient", "merchant_category", "rail"].map((type): [string, unknown, string] => [
        `an empty anyOf of ${type}`,
        anyOf(type, []),
        "rules.0.params.anyOf",
      ]),
      ["a category of three digits", anyOf("merchant_category", ["599"]), "rules.0.params.anyOf.0"],
      [
        "both lists",
        { type: "recipient", params: { anyOf: ["Casino"], noneOf: ["Shop"] } },
        "rules.0.params",
      ],
      ["neither list", { type: "merchant_category", params: {} }, "rules.0.params"],
      ["a rail that there is not", anyOf("rail", ["card", "cash"]), "rules.0.params.anyOf.1"],
      ["a recipient that is blank", anyOf("recipient", [" "]), "rules.0.params.anyOf.0"],
      [
        "a recipient that becomes far longer when it is folded",
        anyOf("recipient", ["Casino", "\ufdfa".repeat(45)]),
        "rules.0.params.anyOf.1",
      ],
      ["too many recipients", anyOf("recipient", many(ANY_OF_MAX + 1)), "rules.0.params.anyOf"],
      [
        "a window of no time",
        { type: "duplicate", params: { windowSeconds: 0 } },
        "rules.0.params.windowSeconds",
      ],
      [
        "a window of 31 days and a second",
        { type: "duplicate", params: { windowSeconds: 2_678_401 } },
        "rules.0.params.windowSeconds",
      ],
      ["a zone that there is not", timed({ timezone: "Europe/Atlantis" }), "rules.0.params.timezone"],
      ["a zone of one system's own", timed({ timezone: "SystemV/PST8" }), "rules.0.params.timezone"],
      ["an offset for a zone", timed({ timezone: "+02:00" }), "rules.0.params.timezone"],
      ["no day", timed({ days: [] }), "rules.0.params.days"],
      ["a day twice", timed({ days: ["mon", "mon"] }), "rules.0.params.days"],
      ["24:00 as the beginning", timed({ from: "24:00" }), "rules.0.params.from"],
      ["a time past the day's end", timed({ to: "24:01" }), "rules.0.params.to"],
      ["a time without its zero", timed({ from: "8:00" }), "rules.0.params.from"],
      ["a window that ends where it begins", timed({ to: "08:00" }), "rules.0.params.to"],
    ];
    it("what is not as the contract says is 400 at its path, and changes nothing", async () => {
      const id = await container();
      for (const [what, rule, path] of bad) {
        const body = { rules: [rule], version: 1 };
        const { issues } = await world.api.refused(set, 400, "VALIDATION_FAILED", {
          token: world.token,
          id,
          body,
        });
        expect(
          issues?.map((issue) => issue.path),
          what,
        ).to.include(path);
      }
      for (const body of [
        { rules: times(RULES_MAX + 1, above), version: 1 },
        { rules: [] },
        { version: 1 },
        { rules: {}, version: 1 },
        { rules: [], version: "1" },
      ]) {
        await world.api.refused(set, 400, "VALIDATION_FAILED", { token: world.token, id, body });
      }
      const twice = above(1, { id: "rule_01ARZ3NDEKTSV4RRFFQ69G5FAV" });
      const body = { rules: [twice, twice], version: 1 };
      const { issues } = await world.api.refused(set, 400, "VALIDATION_FAILED", {
        token: world.token,
        id,
        body,
      });
      expect(issues).to.deep.equal([{ path: "rules.1.id", message: "must not name one rule twice" }]);
      expect(await read(id)).to.deep.equal({ rules: [], version: 1 });
    });

    it("as many rules and entries as may be, are; `outside` is true by itself; 24:00 is an end", async () => {
      const id = await container();
      const full = [
        ...times(RULES_MAX - 2, above),
        anyOf("recipient", many(ANY_OF_MAX)),
        timed({ to: "24:00" }),
      ];
      const { rules } = await put(id, full);
      expect(rules).to.have.lengthOf(RULES_MAX);
      expect(rules.at(-1)?.params).to.deep.equal({ ...window, to: "24:00", outside: true });
    });

    it("a time zone's name is kept as IANA spells it, in whatever case it was sent", async () => {
      const id = await container();
      const zones = ["eUROPE/bERLIN", "us/PACIFIC", "asia/kolkata", "utc", "Nz-Chat", "etc/gmt+5"];
      await put(
        id,
        zones.map((timezone) => timed({ timezone })),
      );
      const { rules } = await read(id);
      expect(rules.map(({ params }) => ("timezone" in params ? params.timezone : null))).to.deep.equal([
        "Europe/Berlin",
        "US/Pacific",
        "Asia/Kolkata",
        "UTC",
        "NZ-CHAT",
        "Etc/GMT+5",
      ]);
    });

    it("the record and the lists of containers do not show them", async () => {
      const id = await container();
      await put(id, EVERY_TYPE);
      const request = { token: world.token, id };
      const shown =
        noun === "project"
          ? [await world.api.ok("getProject", 200, request), await world.api.ok("listProjects", 200, request)]
          : [await world.api.ok("getTeam", 200, request), await world.api.ok("listTeams", 200, request)];
      expect(JSON.stringify(shown)).not.to.include("Casino");
    });
  });
}
