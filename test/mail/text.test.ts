import { expect } from "chai";
import { inertText } from "../../src/mail/inert-text.ts";
import { inviteText } from "../../src/mail/invite-text.ts";
import { approvalText, digestText } from "../../src/mail/approval-text.ts";
import { approvalRecord } from "./held.ts";

const LINK = "https://spend.example.com/invite#token=AAAA";
const textOf = (names: { readonly organization?: string; readonly inviter?: string }) =>
  inviteText({
    organization: "Acme",
    inviter: "Ada",
    role: "admin",
    link: LINK,
    expiresAt: new Date("2026-03-14T09:26:53.589Z"),
    ...names,
  });

const HOSTILE = [
  ["ends of lines", "Acme\r\nBcc: all@example.com", "Acme Bcc: all@example·com"],
  ["other separators of lines", "a\u2028b\u2029c\u0085d\ve", "a b c d e"],
  ["what turns or hides text", "a\u202eb\u200bc\u0000d", "a b c d"],
  ["a link", "see https://evil.example/x now", "see https:∕∕evil·example∕x now"],
  ["a link with a full-width dot", "evil\uff0eexample", "evil·example"],
  ["its own quotation marks", 'Acme" says: pay "now', "Acme' says: pay 'now"],
] as const;

describe("the text of an invite's mail", () => {
  it("says who invites to what, as what, until when the link is good, and that it can be ignored", () => {
    const { subject, text } = textOf({});
    expect(subject).to.equal('Invitation to "Acme"');
    for (const said of ['"Ada"', '"Acme"', "an admin", LINK, "2026-03-14 09:26 UTC", "once", "ignore it"]) {
      expect(text).to.include(said);
    }
  });

  for (const [what, name, shown] of [
    ...HOSTILE,
    ["more than 100 characters", "\u{1f600}".repeat(150), "\u{1f600}".repeat(100)],
  ] as const) {
    it(`${what} in a name neither start a line nor become a link`, () => {
      expect(inertText(name)).to.equal(shown);
      const { subject, text } = textOf({ organization: name, inviter: name });
      expect(subject).to.equal(`Invitation to "${shown}"`);
      expect(text.split("\n")).to.have.lengthOf(textOf({}).text.split("\n").length);
      expect(text.match(/https?:\/\/\S+/g)).to.deep.equal([LINK]);
    });
  }
});

const approval = (written: string) => ({
  ...approvalRecord({ _id: "apr_1", expiresAt: new Date("2026-03-14T09:26:53.589Z") }),
  recipient: written,
  purpose: written,
  agentName: written,
});

describe("the text of a mail about payments on hold", () => {
  const place = { organization: "Acme", baseUrl: "https://spend.example.com" };
  const OURS = ["https://spend.example.com/approvals/apr_1", "https://spend.example.com/settings/security"];
  it("says amount, rail, recipient, agent, purpose, rules and deadline, nothing of it cut", () => {
    const [recipient, purpose] = ["r".repeat(200), "p".repeat(500)];
    const { subject, text } = approvalText({ ...approval("Buyer"), recipient, purpose }, place);
    expect(subject).to.equal(`Approval needed: 1,234.56 USD to "${recipient}"`);
    for (const said of [
      "1,234.56 USD (card)",
      `"${recipient}"`,
      `"${purpose}"`,
      '"Buyer"',
      "agent_threshold",
      "2026-03-14 09:26 UTC",
    ])
      expect(text).to.include(said);
  });

  for (const [what, written, shown] of HOSTILE) {
    it(`${what} in what others wrote neither start a line nor become a link`, () => {
      const { subject, text } = approvalText(approval(written), { ...place, organization: written });
      expect(subject).to.equal(`Approval needed: 1,234.56 USD to "${shown}"`);
      expect(text.split(`"${shown}"`)).to.have.lengthOf(5);
      expect(text.split("\n")).to.have.lengthOf(
        approvalText(approval("plain"), place).text.split("\n").length,
      );
      expect(text.match(/https?:\/\/\S+/g)).to.deep.equal(OURS);
      const digest = digestText([approval(written)], 2, { ...place, organization: written });
      expect(digest.text.match(/https?:\/\/\S+/g)).to.deep.equal([
        OURS[0],
        "https://spend.example.com/approvals",
        OURS[1],
      ]);
    });
  }
});
