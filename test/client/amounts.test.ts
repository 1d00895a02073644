import { expect } from "chai";
import * as fc from "fast-check";
import { Amounts } from "../../src/client/amounts.ts";
import { MAX_CENTS } from "../../src/domain/money.ts";
import { seed } from "../support/seed.ts";
import { shortOrSoak } from "../support/soak.ts";

/** Decimal points and commas, groups of 3 and 2, by spaces, apostrophes and nothing, and digits of ten scripts. */
const LOCALES = (
  "en-US en-GB en-IN en-ZA en-CH de-DE de-AT de-CH fr-FR fr-CH fr-CA it-IT it-CH es-ES es-MX es-AR pt-PT pt-BR " +
  "nl-NL sv-SE nb-NO da-DK fi-FI pl-PL cs-CZ hu-HU ru-RU uk-UA bg-BG sl-SI hr-HR lt-LT et-EE lv-LV el-GR tr-TR " +
  "ar-EG ar-SA ar-AE ar-MA fa-IR ur-PK ckb-IQ ps-AF he-IL hi-IN mr-IN bn-BD ne-NP ta-IN my-MM dz-BT th-TH " +
  "th-TH-u-nu-thai zh-CN zh-u-nu-hanidec ja-JP ko-KR vi-VN id-ID ka-GE hy-AM az-AZ uz-UZ sw-KE af-ZA lb-LU gsw-CH rm-CH"
).split(" ");

const byLocale = new Map(LOCALES.map((locale) => [locale, new Amounts(locale)]));
const inLocale = (locale: string): Amounts => byLocale.get(locale) ?? new Amounts(locale);
const locales = fc.constantFrom(...LOCALES);
const cents = fc.oneof(fc.nat(200_000), fc.integer({ min: 0, max: MAX_CENTS }));
const options = { seed, numRuns: shortOrSoak(2_000, 200_000) };

const OFFERED = /^Do you mean (?<one>.+?)(?: or (?<other>.+))?\?$/u;
/** A text that is read as these cents, or the readings that its refusal offers. */
type Expected = number | readonly string[];

const TABLE: readonly (readonly [locale: string, typed: string, Expected])[] = [
  ["en-US", "12.50", 1_250],
  ["en-US", "12.5", 1_250],
  ["en-US", "12.", 1_200],
  ["en-US", ".5", 50],
  ["en-US", "1,250", 125_000],
  ["en-US", " $1,250.00 ", 125_000],
  ["en-US", "USD 1,250", 125_000],
  ["en-US", "１２．５０", 1_250],
  ["en-US", "12,50", ["12.50", "1,250.00"]],
  ["en-US", "0,99", ["0.99"]],
  ["en-US", "1.234,56", ["1,234.56"]],
  ["en-US", "1,2500", ["1.25", "12,500.00"]],
  ["en-US", "1250,000", ["1,250.00", "1,250,000.00"]],
  ["en-US", "1 250", ["1,250.00"]],
  ["en-US", "1’250.50", ["1,250.50"]],
  ["en-US", "12,34,567.00", ["1,234,567.00"]],
  ["en-US", "0,125", []],
  ["en-US", "-12", []],
  ["en-US", "12.345.6.", []],
  ["en-US", "1e3", []],
  ["en-US", "", []],
  ["en-US", "9".repeat(20), []],
  ["de-DE", "12,50", 1_250],
  ["de-DE", "1.234,56", 123_456],
  ["de-DE", "1.234,56 €", []],
  ["de-DE", "12.50", ["12,50", "1.250,00"]],
  ["de-DE", "1,250", ["1,25", "1.250,00"]],
  ["de-DE", "1,234.56", ["1.234,56"]],
  ["de-CH", "1’250.50", 125_050],
  ["de-CH", "1'250.50", 125_050],
  ["de-CH", "12'50", ["1'250.00"]],
  ["fr-FR", "1 250,50", 125_050],
  ["fr-FR", "1\u00a0250,50", 125_050],
  ["fr-FR", "1\u202f250,50", 125_050],
  ["fr-FR", "12 50", ["1 250,00"]],
  ["fr-CH", "12,50", 1_250],
  ["fr-CH", "12.50", 1_250],
  ["en-IN", "12,34,567.00", 123_456_700],
  ["en-IN", "1,234,567.00", ["12,34,567.00"]],
  ["ar-EG", "١٢٫٥٠", 1_250],
  ["ar-EG", "١٬٢٥٠٫٠٠", 125_000],
  ["ar-EG", "12.50", 1_250],
  ["ar-EG", "١٢,٥٠", ["١٢٫٥٠", "١٬٢٥٠٫٠٠"]],
  ["ar-EG", "١٢،٥٠", ["١٢٫٥٠", "١٬٢٥٠٫٠٠"]],
  ["fa-IR", "۱٬۲۵۰٫۵", 125_050],
  ["en-US", "۱۲٫۵۰", ["12.50", "1,250.00"]],
];

const offeredBy = (problem: string): string[] =>
  Object.values(OFFERED.exec(problem)?.groups ?? {}).filter((reading) => reading !== undefined);

/** With the plain space and apostrophe: which others a locale has differs between versions of its data. */
const plain = (text: string): string => text.replaceAll(/\s/g, " ").replaceAll("’", "'");

describe(`amounts as readers write them (seed ${String(seed)})`, () => {
  it("what is shown, typed back, is the same amount in every locale", () => {
    fc.assert(
      fc.property(locales, cents, (locale, amount) => {
        const amounts = inLocale(locale);
        for (const shown of [amounts.typed(amount), amounts.money(amount)])
          expect(amounts.read(shown), `${locale} ${shown}`).to.deep.equal({ ok: true, cents: amount });
      }),
      options,
    );
  });

  it("no text with one or two last digits after a separator is read a hundred times too high", () => {
    const separator = fc.constantFrom(...Array.from(" \u00a0\u202f.,'’٫٬،"));
    const groups = fc.array(fc.tuple(separator, fc.stringMatching(/^\d{1,4}$/)), { maxLength: 3 });
    const text = fc.tuple(fc.stringMatching(/^\d{1,4}$/), groups, separator, fc.stringMatching(/^\d{1,2}$/));
    fc.assert(
      fc.property(locales, text, (locale, [head, middle, last, decimals]) => {
        const typed = [head, ...middle.flat(), last, decimals].join("");
        const read = inLocale(locale).read(typed);
        const whole = Number([head, ...middle.map(([, digits]) => digits)].join(""));
        if (read.ok) {
          expect(read.cents, `${locale} ${typed}`).to.equal(whole * 100 + Number(decimals.padEnd(2, "0")));
        }
      }),
      options,
    );
  });

  it("each reading that a refusal offers is taken, typed back, and no two are the same amount", () => {
    const text = fc.stringMatching(/^[0-9]{1,4}([.,' ][0-9]{1,4}){1,3}$/);
    fc.assert(
      fc.property(locales, text, (locale, typed) => {
        const amounts = inLocale(locale);
        const read = amounts.read(typed);
        const offered = read.ok ? [] : offeredBy(read.problem).map((reading) => amounts.read(reading));
        const all = new Set(offered.map((each) => (each.ok ? each.cents : null)));
        expect(all.has(null), `${locale} ${typed}`).to.equal(false);
        expect(all.size, `${locale} ${typed}`).to.equal(offered.length);
      }),
      options,
    );
  });

  for (const [locale, typed, expected] of TABLE) {
    const what = typeof expected === "number" ? `is ${String(expected)} cents` : "is asked about";
    it(`${locale}: "${typed}" ${what}`, () => {
      const read = inLocale(locale).read(typed);
      if (typeof expected === "number") expect(read).to.deep.equal({ ok: true, cents: expected });
      else expect(read.ok ? read : offeredBy(read.problem).map(plain)).to.deep.equal(expected);
    });
  }
});
