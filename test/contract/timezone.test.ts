import { expect } from "chai";
import { offsetOf } from "../../src/lib/zone-offset.ts";
import { timezone } from "../../src/contract/timezone.ts";
import { TIMEZONE_LINKS } from "../../src/contract/timezone-links.ts";

/** The same name with small and capital letters in turn. */
const respelled = (name: string): string =>
  name.replaceAll(/(.)(.?)/g, (_, one: string, other: string) => one.toLowerCase() + other.toUpperCase());

describe("time zones' names", () => {
  const names = [...Intl.supportedValuesOf("timeZone"), ...TIMEZONE_LINKS];

  it("each is taken in any case and kept in one spelling, which has a clock", () => {
    const kept = new Set<string>();
    for (const name of names) {
      for (const sent of [name, name.toLowerCase(), name.toUpperCase(), respelled(name)]) {
        expect(timezone.parse(sent), sent).to.equal(name);
        kept.add(timezone.parse(sent));
      }
      expect(offsetOf(name)(0), name).to.be.within(-14 * 60, 14 * 60);
    }
    expect(kept.size).to.equal(names.length);
  });

  it("asking for a zone's clock again makes nothing anew, in whatever case the zone is sent", () => {
    const made: unknown[] = [];
    const real = Intl.DateTimeFormat;
    const counted = new Proxy(real, {
      construct: (target, given: Parameters<typeof Intl.DateTimeFormat>) => {
        made.push(given);
        return new target(...given);
      },
    });
    Object.defineProperty(Intl, "DateTimeFormat", { value: counted, configurable: true, writable: true });
    try {
      for (const sent of ["Asia/Tokyo", "ASIA/TOKYO", "asia/tokyo", "aSIA/tOKYO"]) {
        expect(offsetOf(timezone.parse(sent))(0)).to.equal(540);
      }
    } finally {
      Object.defineProperty(Intl, "DateTimeFormat", { value: real, configurable: true, writable: true });
    }
    expect(made.length).to.be.at.most(1);
  });

  it("the names that people know are there, whichever of two ICU goes by", () => {
    for (const name of ["Asia/Kolkata", "Asia/Calcutta", "Europe/Kyiv", "Europe/Kiev", "US/Eastern", "UTC"])
      expect(timezone.parse(name)).to.equal(name);
  });

  it("what is no IANA name is refused, though Node takes some of it for a zone", () => {
    const none = ["", "IST", "PST", "SystemV/PST8", "+02:00", "Factory", " UTC", "__proto__", "constructor"];
    for (const name of none) expect(timezone.safeParse(name).success, name).to.equal(false);
  });
});
