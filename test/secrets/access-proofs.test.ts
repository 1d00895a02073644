import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { ACCESS_KINDS, ACCESS_RECORDS, AccessProofs } from "../../src/secrets/access-proofs.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";

const macs = () => MasterKey.parse(randomBytes(32).toString("base64url"), "a test").macs("access-proofs");

describe("proofs of records that decide who may do what", () => {
  const forged: string[] = [];
  const proofs = new AccessProofs(macs(), (kind, id) => forged.push(`${kind} ${id}`));

  it("each proven field changes the proof, as do the kind, the key and a proof that was struck", () => {
    for (const kind of ACCESS_KINDS) {
      const { fields, path } = ACCESS_RECORDS[kind];
      const record = withValues(fields.map((field) => [field, `a ${field}`]));
      const proven = withValues([[path, proofs.make(kind, record)]], record);
      expect(proofs.genuine(kind, proven), kind).to.equal(proven);
      const changes: (readonly [string, unknown])[] = fields.flatMap((field) => [
        [field, "another"],
        [field, null],
      ]);
      for (const change of [...changes, [path, undefined] as const])
        expect(proofs.isGenuine(kind, withValues([change], proven)), `${kind} ${change[0]}`).to.equal(false);
      const others = ACCESS_KINDS.filter((other) => other !== kind).map((other) =>
        proofs.make(other, record),
      );
      expect(others, kind).not.to.include(proofs.make(kind, record));
      expect(new AccessProofs(macs()).isGenuine(kind, proven), kind).to.equal(false);
    }
  });

  it("a record is the same when read again: dates, lists and fields that are not there", () => {
    const user: Values = { _id: "user", role: "owner", secondFactors: [{ kind: "totp", id: "secret" }] };
    const session: Values = { _id: "session", createdAt: new Date(0), amr: ["pwd"], stepUpExpiresAt: null };
    const person: Values = { ...proofs.proven("user", user), secondFactorRequired: null };
    expect(proofs.isGenuine("user", person)).to.equal(true);
    const read = { ...proofs.proven("session", session), createdAt: new Date(0), lastSeenAt: new Date() };
    expect(proofs.isGenuine("session", read)).to.equal(true);
    const elevated = { ...read, ...proofs.changed("session", read, { stepUpExpiresAt: new Date(1) }) };
    expect(proofs.isGenuine("session", elevated)).to.equal(true);
  });

  it("a record that is not genuine is withheld and reported, one that is not there is not", () => {
    const read = { ...proofs.proven<Values>("team", { _id: "team", projectId: "one" }), projectId: "other" };
    expect(proofs.genuine("team", read)).to.equal(null);
    expect(proofs.genuine("team", null)).to.equal(null);
    expect(forged).to.deep.equal(["team team"]);
  });
});

interface Values {
  readonly _id: string;
  readonly [name: string]: unknown;
}

/** A record with these values at these paths. */
function withValues(values: readonly (readonly [string, unknown])[], record: Values = { _id: "id" }): Values {
  return values.reduce<Values>((made, [path, value]) => {
    const [name = "", inner] = path.split(".");
    if (inner === undefined) return { ...made, [name]: value };
    return { ...made, [name]: { ...Object(made[name]), [inner]: value } };
  }, record);
}
