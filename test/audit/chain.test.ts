import { expect } from "chai";
import * as fc from "fast-check";
import { auditValue, canonicalJson } from "../../src/domain/audit/canonical.ts";
import { hashedText, link, linkAll, NO_ENTRY } from "../../src/domain/audit/entry.ts";
import { ChainVerifier } from "../../src/domain/audit/verify.ts";
import { seed } from "../support/seed.ts";
import {
  anchorOf,
  chainOf,
  foreignSeal,
  headOf,
  recordOf,
  relinked,
  renumbered,
  seal,
  stored,
  times,
  verdictOn,
  withField,
} from "./tampering.ts";

const LENGTH = 9;
/** First, a middle one, last. */
const PLACES = [1, 5, LENGTH];

/** Every field of an entry, those of a person's choosing and those of the chain alike. */
const FIELDS: readonly (readonly [readonly string[], unknown])[] = [
  [["organizationId"], "01a1fedc-b36f-716a-9ab4-93fd85fe3901"],
  [["entryKey"], "req_other"],
  [["at"], "2026-01-01T00:00:00.001Z"],
  [["action"], "archiveAgent"],
  [["actor", "id"], "somebody else"],
  [["actor", "type"], "system"],
  [["actor", "sessionId"], "another"],
  [["actor", "name"], "Unicode"],
  [["actor", "more"], null],
  [["resource", "id"], null],
  [["resource", "type"], "team"],
  [["from"], null],
  [["from", "address"], "192.0.2.2"],
  [["result", "status"], 403],
  [["result", "code"], "ROLE_REQUIRED"],
  [["before", "budgetCents"], 5_000],
  [["before", "limits"], []],
  [["after"], null],
  [["decision"], {}],
  [["version"], 2],
  [["previousHash"], "f".repeat(64)],
  [["hash"], "f".repeat(64)],
  [["mac"], "f".repeat(64)],
  [["aFieldMore"], true],
];

describe("the canonical form of an audit entry", () => {
  it("is the same for the same content in any order, and another for any other content", () => {
    const [entry] = chainOf(1);
    const reversed = Object.fromEntries(Object.entries(entry ?? {}).toReversed());
    expect(hashedText(reversed)).to.equal(hashedText(entry ?? {}));
    expect(canonicalJson({ b: [1, "ä", null], a: { d: true, c: -0.5 } })).to.equal(
      '{"a":{"c":-0.5,"d":true},"b":[1,"ä",null]}',
    );
    const texts = [1, "1", true, "true", null, "null", [], {}, [null], { a: null }].map(canonicalJson);
    expect(new Set(texts).size).to.equal(texts.length);
  });

  it(`has its names sorted at every depth, whatever order they came in (TEST_SEED=${seed})`, () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
        const text = canonicalJson(value);
        expect(JSON.parse(text)).to.deep.equal(JSON.parse(JSON.stringify(value)));
        for (const ordered of [inOrder(value, 1), inOrder(value, -1)]) {
          expect(canonicalJson(ordered)).to.equal(text);
        }
      }),
      { seed },
    );
    expect(canonicalJson({ "\u{1f98a}": 1, "\uffff": 2, a: 3, B: 4 })).to.equal(
      '{"B":4,"a":3,"\u{1f98a}":1,"\uffff":2}',
    );
  });

  it("has no text for what an entry can't hold, so that no database type passes for content", () => {
    for (const odd of [undefined, Number.NaN, 1n, new Date(0), new Map(), () => 1]) {
      for (const holder of [odd, [odd], { a: 1, b: odd }, { b: 1, a: { c: [odd] } }]) {
        expect(() => JSON.parse(canonicalJson(holder)) as unknown).to.throw();
      }
    }
  });

  it(`a value that is kept is read back as it was hashed (TEST_SEED=${seed})`, () => {
    const anything = fc.anything({ withDate: true, withNullPrototype: false });
    fc.assert(
      fc.property(anything, (value) => {
        const kept = auditValue(value);
        expect(canonicalJson(JSON.parse(JSON.stringify(kept)))).to.equal(canonicalJson(kept));
      }),
      { seed },
    );
  });

  it("is fixed for good: a known entry has its known hash", () => {
    const [entry] = linkAll([recordOf(1)], NO_ENTRY, seal);
    expect(entry?.hash).to.equal("af70098183f11c7b1557d0be57f1ab2c8dd5331c2924af2b2e60f16a6e02c94b");
  });
});

/** The same content, all names in ascending order, or all in descending. */
function inOrder(value: unknown, direction: 1 | -1): unknown {
  if (Array.isArray(value)) return value.map((item) => inOrder(item, direction));
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).toSorted(([a], [b]) => (a < b ? -direction : direction));
  return Object.fromEntries(fields.map(([name, field]) => [name, inOrder(field, direction)]));
}

describe("the verifier of a chain", () => {
  it("finds nothing wrong with an unaltered chain of any length, with and without its anchors", () => {
    for (const length of [0, 1, 2, LENGTH]) {
      expect(verdictOn(chainOf(length)), `${length}`).to.equal(null);
      if (length > 0) expect(verdictOn(chainOf(length), anchorOf(chainOf(length)))).to.equal(null);
    }
  });

  it("says how many entries and anchors it checked", () => {
    const chain = chainOf(LENGTH);
    const verifier = new ChainVerifier(seal, new Map([...anchorOf(chain.slice(0, 3)), ...anchorOf(chain)]));
    for (const fields of chain) verifier.take({ position: Number(fields["sequence"]), fields });
    expect(verifier.end()).to.equal(null);
    expect([verifier.checkedEntries, verifier.checkedAnchors]).to.deep.equal([LENGTH, 2]);
  });

  for (const place of PLACES) {
    const index = place - 1;
    const anchors = anchorOf(chainOf(LENGTH));

    describe(`at entry ${place} of ${LENGTH}`, () => {
      for (const [path, value] of FIELDS) {
        it(`names it when ${path.join(".")} was changed`, () => {
          const chain = chainOf(LENGTH);
          const changed = chain.map((fields, at) => (at === index ? withField(fields, path, value) : fields));
          expect(verdictOn(changed)).to.include({ sequence: place, problem: "changed" });
        });
      }

      it("names it when it was changed and rehashed, or all behind it relinked, without the key", () => {
        const chain = chainOf(LENGTH).map((fields, at) =>
          at === index ? withField(fields, ["after"], null) : fields,
        );
        const [all, one] = [
          relinked(chain, index, foreignSeal),
          chain.map((fields, at) =>
            at === index ? { ...fields, hash: seal.hash(hashedText(fields)) } : fields,
          ),
        ];
        for (const forged of [all, one]) {
          expect(verdictOn(forged)).to.include({ sequence: place, problem: "changed" });
        }
      });

      it("names it when it was removed, and when those behind were given its place", () => {
        const chain = chainOf(LENGTH).toSpliced(index, 1);
        expect(verdictOn(chain, anchors)).to.include({
          sequence: place,
          problem: place === LENGTH ? "cut_tail" : "removed",
        });
        expect(verdictOn(renumbered(chain), anchors)).to.include({
          sequence: place,
          problem: place === LENGTH ? "cut_tail" : "removed",
        });
      });

      it("names it when it was removed and those behind were linked anew without the key", () => {
        const chain = relinked(chainOf(LENGTH).toSpliced(index, 1), index, foreignSeal);
        expect(verdictOn(chain, anchors)).to.include({
          sequence: place,
          problem: place === LENGTH ? "cut_tail" : "changed",
        });
      });

      it("names it when one was inserted before it or behind it", () => {
        const chain = chainOf(LENGTH);
        const invented = { ...chain[index], entryKey: "req_invented", mac: "0".repeat(64) };
        for (const at of [index, place]) {
          const longer = renumbered(chain.toSpliced(at, 0, invented));
          expect(verdictOn(longer, anchors)?.sequence).to.equal(at + 1);
          expect(verdictOn(longer, anchors)?.problem).to.be.oneOf(["inserted", "changed", "removed"]);
        }
      });

      it("names an invented one that is linked to the one before it", () => {
        const chain = chainOf(LENGTH);
        const invented = stored(link(recordOf(99), headOf(chain.slice(0, index)), foreignSeal));
        const longer = renumbered(chain.toSpliced(index, 0, invented));
        expect(verdictOn(longer)).to.include({ sequence: place, problem: "inserted" });
      });

      it("names it when it changed places with its neighbour, by its number or by its place", () => {
        const chain = chainOf(LENGTH + 1);
        const [one, other] = [chain[index] ?? {}, chain[place] ?? {}];
        const swapped = chain.with(index, other).with(place, one);
        expect(verdictOn(renumbered(swapped))).to.include({ sequence: place, problem: "moved" });
        const verifier = new ChainVerifier(seal);
        swapped.forEach((fields, at) => verifier.take({ position: at + 1, fields }));
        expect(verifier.end()).to.include({ sequence: place, problem: "moved" });
      });

      it("names where the end was cut off to before what was anchored", () => {
        const chain = chainOf(LENGTH).slice(0, index);
        expect(verdictOn(chain, anchors)).to.include({ sequence: place, problem: "cut_tail" });
      });

      it("names it against its anchor when all from it on was rewritten, even with the key", () => {
        const anchored = anchorOf(chainOf(place));
        const chain = chainOf(LENGTH).map((fields, at) =>
          at === index ? withField(fields, ["after"], null) : fields,
        );
        const forged = relinked(chain, index, seal);
        expect(verdictOn(forged)).to.equal(null);
        expect(verdictOn(forged, anchored)).to.include({ sequence: place, problem: "rewritten" });
      });
    });
  }

  it("does not find that an end was cut off which was never anchored", () => {
    expect(verdictOn(chainOf(LENGTH).slice(0, 4), anchorOf(chainOf(3)))).to.equal(null);
  });

  it("names an entry at a place where none can be", () => {
    const verifier = new ChainVerifier(seal);
    const [first, second] = chainOf(2);
    verifier.take({ position: 0, fields: second ?? {} });
    verifier.take({ position: 1, fields: first ?? {} });
    expect(verifier.end()).to.include({ sequence: 1, problem: "inserted" });
  });

  it("names a chain that two histories were made of", () => {
    const chain = chainOf(LENGTH);
    const other = relinked(
      chain.map((fields, at) => (at === 3 ? withField(fields, ["after"], null) : fields)),
      3,
      seal,
    );
    expect(verdictOn([...chain.slice(0, 6), ...other.slice(6)])).to.include({
      sequence: 7,
      problem: "rewritten",
    });
  });

  it("bears as many anchors as a chain has after years, and still finds that its end was cut off", () => {
    const chain = chainOf(LENGTH);
    const many = new Map(times(200_000, (index) => [index + LENGTH + 1, ["0".repeat(64)]] as const));
    expect(verdictOn(chain, many)).to.include({ sequence: LENGTH + 1, problem: "cut_tail" });
  });

  it(`any change without the key is found, and no earlier entry blamed (TEST_SEED=${seed})`, () => {
    const step = fc.record({
      length: fc.integer({ min: 2, max: 30 }),
      place: fc.nat(),
      kind: fc.constantFrom("change", "remove", "insert", "swap", "cut", "relink"),
      field: fc.constantFrom(...FIELDS),
    });
    fc.assert(
      fc.property(step, ({ field: [path, value], kind, length, place }) => {
        const chain = chainOf(length);
        const index = place % length;
        const anchors = anchorOf(chain);
        const touched = (at: number) => withField(chain[at] ?? {}, path, value);
        const tampered = {
          change: () => chain.with(index, touched(index)),
          remove: () => renumbered(chain.toSpliced(index, 1)),
          insert: () => renumbered(chain.toSpliced(index, 0, touched(index))),
          swap: () => {
            const at = Math.min(index, length - 2);
            return renumbered(chain.with(at, chain[at + 1] ?? {}).with(at + 1, chain[at] ?? {}));
          },
          cut: () => chain.slice(0, index),
          relink: () => relinked(chain.with(index, { ...chain[index], action: "other" }), index, foreignSeal),
        }[kind]();
        const found = verdictOn(tampered, anchors);
        expect(found).not.to.equal(null);
        expect(found?.sequence).to.be.at.least(kind === "swap" ? Math.min(index, length - 2) + 1 : index + 1);
        expect(found?.sequence).to.be.at.most(index + 2);
      }),
      { seed, numRuns: 200 },
    );
  });
});

it("stored entries are what was linked", () => {
  const entries = linkAll(
    times(3, (index) => recordOf(index)),
    NO_ENTRY,
    seal,
  );
  expect(verdictOn(entries.map(stored))).to.equal(null);
});
