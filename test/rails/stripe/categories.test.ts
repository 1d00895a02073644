import { expect } from "chai";
import {
  categoriesOver,
  NO_RESTRICTIONS,
  readyRestrictions,
} from "../../../src/domain/rules/restrictions.ts";
import { spendingCategories } from "../../../src/rails/stripe/categories.ts";

const lists = (only: readonly string[] | null, ...never: string[]) =>
  readyRestrictions({ ...NO_RESTRICTIONS, merchantCategories: { only, never, uncoded: "allow" } });

describe("categories of a card at Stripe", () => {
  it("are those that all levels allow, less those that any forbids", () => {
    const levels = {
      agent: lists(["5812", "5942", "5734"]),
      team: lists(["5942", "5734", "7995"], "5734"),
      project: lists(null, "7995"),
    };
    const over = categoriesOver(levels);
    expect(over).to.deep.equal({ only: ["5942", "5734"], never: ["5734", "7995"] });
    expect(spendingCategories(over)).to.deep.equal({ allowed_categories: ["book_stores"] });
    const none = { agent: undefined, team: undefined, project: undefined };
    expect(spendingCategories(categoriesOver(none))).to.deep.equal({});
  });

  it("block what they can name where not all that is allowed has a name of its own", () => {
    const blocked = { blocked_categories: ["betting_casino_gambling"] };
    for (const only of [["5942", "4511"], ["7995"], null])
      expect(spendingCategories({ only, never: ["7995", "7011"] }), String(only)).to.deep.equal(blocked);
  });
});
