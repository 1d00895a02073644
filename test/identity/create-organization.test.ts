import { expect } from "chai";
import { TEST_ACCESS_PROOFS } from "../support/access-proofs.ts";
import {
  createOrganizationWithOwner,
  type CreateOrganizationInput,
} from "../../src/identity/create-organization.ts";
import { authCollections, type AuthCollections } from "../../src/store/identity-documents.ts";
import { testDatabase, type TestDatabase } from "../support/mongo.ts";
import { atOnce, outcomeOf, refusalOf, valueOf } from "./support.ts";

const INPUT: CreateOrganizationInput = {
  name: "Analytical Engines",
  ownerEmail: "ada@example.test",
  ownerPassword: "correct horse battery",
  plan: "free",
};

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe("Creating an organization with its owner", () => {
  let database: TestDatabase;
  let collections: AuthCollections;
  // No index is made here: the first command on an empty database has to see to that itself.
  beforeEach(async () => {
    database = await testDatabase();
    collections = authCollections(database.db);
  });
  afterEach(() => database.close());

  const create = (changes: Partial<CreateOrganizationInput> = {}) =>
    createOrganizationWithOwner(database.db, TEST_ACCESS_PROOFS, { ...INPUT, ...changes });
  const counts = async () => [
    await collections.organizations.countDocuments(),
    await collections.users.countDocuments(),
  ];

  it("writes both, provisioning, with UUID v7 ids for what the workflow is to make", async () => {
    const ids = valueOf(await create());
    for (const id of Object.values(ids)) expect(id).to.match(UUID_V7);
    const organization = await collections.organizations.findOne({ _id: ids.organizationId });
    expect(organization).to.deep.include({
      name: "Analytical Engines",
      plan: "free",
      status: "provisioning",
      defaultProjectId: ids.projectId,
      defaultTeamId: ids.teamId,
      restPerMinute: null,
      mcpPerMinute: null,
    });
    const owner = await collections.users.findOne({ _id: ids.userId });
    expect(owner).to.include({ role: "owner", name: "ada", organizationId: ids.organizationId });
    expect(JSON.stringify(owner)).not.to.include(INPUT.ownerPassword);
  });

  it("takes an enterprise plan's custom limits", async () => {
    const limits = { restPerMinute: 12_000, mcpPerMinute: 7_000 };
    const ids = valueOf(await create({ plan: "enterprise", ownerName: "Ada Lovelace", ...limits }));
    const organization = await collections.organizations.findOne({ _id: ids.organizationId });
    expect(organization).to.include(limits);
  });

  const REFUSED: readonly (readonly [
    why: string,
    changes: Partial<CreateOrganizationInput>,
    path: string,
  ])[] = [
    ["an empty name", { name: "  " }, "name"],
    ["a name of 101 characters", { name: "n".repeat(101) }, "name"],
    ["a name with a NUL", { name: "a\u0000b" }, "name"],
    ["no e-mail address", { ownerEmail: "ada" }, "ownerEmail"],
    ["an e-mail with a line break", { ownerEmail: "ada@example.test\nBcc: x@y.test" }, "ownerEmail"],
    ["a password of 11 characters", { ownerPassword: "eleven char" }, "ownerPassword"],
    ["a breached password", { ownerPassword: "password1234" }, "ownerPassword"],
    [
      "a password made of the organization's name",
      { ownerPassword: "analyticalengines", name: "Analytical Engines" },
      "ownerPassword",
    ],
    ["an unknown plan", { plan: "platinum" }, "plan"],
    ["custom limits on another plan", { plan: "pro", restPerMinute: 5 }, "restPerMinute"],
    ["a limit of zero", { plan: "enterprise", mcpPerMinute: 0 }, "mcpPerMinute"],
    ["half a request per minute", { plan: "enterprise", restPerMinute: 0.5 }, "restPerMinute"],
  ];
  for (const [why, changes, path] of REFUSED) {
    it(`refuses ${why}, naming the field, and writes nothing`, async () => {
      const refusal = refusalOf(await create(changes));
      expect(refusal.code).to.equal("VALIDATION_FAILED");
      expect(refusal.issues?.map((issue) => issue.path)).to.deep.equal([path]);
      expect(JSON.stringify(refusal)).not.to.include(INPUT.ownerPassword);
      expect(await counts()).to.deep.equal([0, 0]);
    });
  }

  it("an e-mail may own several organizations, and another password makes another one", async () => {
    valueOf(await create());
    valueOf(await create({ ownerEmail: "ADA@Example.Test", name: "Another" }));
    valueOf(await create({ ownerPassword: "another password" }));
    expect(await counts()).to.deep.equal([3, 3]);
  });

  it("ten of the same call at once make one organization and answer its ids", async () => {
    const results = await atOnce(10, () => create());
    const ids = new Set(results.map((result) => valueOf(result).organizationId));
    expect(ids.size).to.equal(1);
    expect(await counts()).to.deep.equal([1, 1]);
  });

  it("repeats its answer with the same ids until the organization is ready, and then refuses", async () => {
    const first = valueOf(await create());
    expect(valueOf(await create())).to.deep.equal(first);
    await collections.organizations.updateOne({ _id: first.organizationId }, { $set: { status: "ready" } });
    expect(outcomeOf(await create())).to.equal("VALIDATION_FAILED");
    expect(await counts()).to.deep.equal([1, 1]);
  });
});
