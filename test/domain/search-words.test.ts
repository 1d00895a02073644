import { expect } from "chai";
import { searchTerms, searchWords } from "../../src/domain/search-words.ts";

const wordsOf = (purpose: string, recipient = "", amountCents = 100): string[] =>
  searchWords({ amountCents, onChainTxHash: null, purpose, recipient });

/** Whether a payment of this purpose is found by a search. */
const isFound = (purpose: string, search: string): boolean => {
  const words = wordsOf(purpose);
  return searchTerms(search).every((term) => words.some((word) => word.startsWith(term)));
};

describe("words of a search", () => {
  it("a payment is found by the beginnings of its words, in any order, case, accents and width", () => {
    const purpose = "Café Ünïcode GmbH & Co., Straße 12; ΟΔΟΣ ΣΟΦΙΑΣ; İstanbul; ｗｉｄｅ; Йод";
    const searches =
      "cafe|CAFÉ|cafe\u0301|uni caf|strasse|STRAß 12|gmbh co|οδός|οδοσ σοφ|istan|wide|wi|йод|иод|  ,cafe; ";
    for (const search of searches.split("|")) expect(isFound(purpose, search), search).to.equal(true);
    for (const search of ["afe", "cafes", "cafe bar", "13"])
      expect(isFound(purpose, search), search).to.equal(false);
  });

  it("scripts without spaces are found by any of their characters and pairs", () => {
    for (const [purpose, search] of [
      ["東京電力の請求書", "電力"],
      ["東京電力の請求書", "東京電力"],
      ["東京電力の請求書", "書"],
      ["サーバー費用", "バー"],
      ["ภาษาไทย", "ไทย"],
      ["AWS請求 3月", "aws 請求"],
      ["कार्य समाप्त", "समा"],
      ["فاتورة كهرباء", "كهرب"],
      ["서버 비용", "비"],
    ] as const)
      expect(isFound(purpose, search), search).to.equal(true);
    expect(isFound("東京電力", "力電")).to.equal(false);
  });

  it("amounts, decimals and thousands are one word; a long hash is told from another", () => {
    expect(wordsOf("1,234,567.50 EUR", "Shop", 9_000)).to.deep.equal(["90.00", "shop", "1234567.50", "eur"]);
    expect(searchTerms("$1,234.5")).to.deep.equal(["1234.5"]);
    const hash = `0x${"ab".repeat(32)}`;
    const words = searchWords({ amountCents: 1, onChainTxHash: hash, purpose: "", recipient: "" });
    expect(searchTerms(hash.toUpperCase())).to.deep.equal([words[1]]);
    expect(searchTerms(`0x${"ab".repeat(8)}${"cd".repeat(24)}`)).not.to.include(words[1]);
  });

  it("no text gives a payment more than 40 short words; signs alone are no words to search for", () => {
    const distinct = Array.from({ length: 250 }, (_none, index) => String.fromCodePoint(0x4e00 + index)).join(
      "",
    );
    for (const text of [
      distinct,
      Array.from(distinct).join(" "),
      "ﷺ".repeat(500),
      "a".repeat(10_000),
      "é".repeat(500),
    ]) {
      const words = wordsOf(text, text);
      expect(words.length).to.be.within(1, 40);
      expect(Math.max(...words.map((word) => Array.from(word).length))).to.be.at.most(32);
    }
    expect(searchTerms("!!! … \u0000 -- .* $ ^")).to.deep.equal([]);
    expect(searchTerms("a.*b (c|d) a ab")).to.deep.equal(["b", "c", "d", "ab"]);
  });
});
