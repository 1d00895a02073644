import { expect } from "chai";
import {
  type ApprovalMail,
  type ApprovalMailEnd,
  type ApprovalMailState,
  ended,
  type HeldPayment,
  MAIL_TRIES_MAX,
  MAILS_PER_HOUR_MAX,
  nextStep,
  NOTHING_TO_MAIL,
  withMailInFlight,
  withHeld,
} from "../../src/domain/approval-mails.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const NOON = Date.UTC(2026, 10, 26, 12);

const heldAt = (at: number): HeldPayment => ({ approvalId: `apr_${at}`, heldAt: at });
const burst = (at: number, count: number): readonly HeldPayment[] =>
  Array.from({ length: count }, (_, index) => heldAt(at + index));

/** One person's mails over time; `mails` has what was sent, and when. */
class Mailbox {
  now = NOON;
  readonly mails: { readonly at: number; readonly about: string }[] = [];
  #state: ApprovalMailState = NOTHING_TO_MAIL;
  end: ApprovalMailEnd = "sent";

  hold(...payments: readonly HeldPayment[]): void {
    this.#state = withHeld(this.#state, payments, this.now);
  }

  /** Does everything that is due by then. */
  runUntil(until: number): void {
    for (;;) {
      const step = nextStep(this.#state, this.now);
      if (step.kind === "end" || (step.kind === "wait" && step.until > until)) break;
      if (step.kind === "wait") this.now = step.until;
      else this.#send(step.mail);
    }
    this.now = until;
  }

  /** A mail is on its way; the caller says how it ends. */
  begin(): (end: ApprovalMailEnd) => void {
    const step = nextStep(this.#state, this.now);
    if (step.kind !== "send") throw new Error(`nothing is due: ${step.kind}`);
    this.#state = withMailInFlight(this.#state, step.mail, this.now);
    return (end) => (this.#state = ended(this.#state, step.mail, end, this.now));
  }

  get step() {
    return nextStep(this.#state, this.now);
  }

  #send(mail: ApprovalMail): void {
    this.#state = withMailInFlight(this.#state, mail, this.now);
    const about = mail.kind === "single" ? mail.approvalId : `${mail.since}-${mail.through}`;
    this.mails.push({ at: this.now, about });
    this.#state = ended(this.#state, mail, this.end, this.now);
  }
}

describe("mails about payments on hold", () => {
  it("each payment is mailed at once while the hour has room, and no payment twice", () => {
    const mailbox = new Mailbox();
    const held = [heldAt(NOON), heldAt(NOON + MINUTE)];
    for (const each of held) {
      mailbox.runUntil(each.heldAt);
      mailbox.hold(each, each);
      mailbox.runUntil(each.heldAt);
      mailbox.hold(each);
    }
    mailbox.runUntil(NOON + 3 * HOUR);
    expect(mailbox.mails).to.deep.equal(
      held.map(({ approvalId, heldAt: at }) => ({ at, about: approvalId })),
    );
  });

  it("a burst for which the hour has no room is one digest of all of it, at once", () => {
    const mailbox = new Mailbox();
    mailbox.hold(...burst(NOON, MAILS_PER_HOUR_MAX + 1));
    mailbox.runUntil(NOON);
    expect(mailbox.mails).to.deep.equal([{ at: NOON, about: `${NOON}-${NOON + MAILS_PER_HOUR_MAX}` }]);
  });

  it("what the hour has no room for is one digest when the oldest mail is an hour old", () => {
    const mailbox = new Mailbox();
    for (let minute = 0; minute < 30; minute += 1) {
      mailbox.runUntil(NOON + minute * MINUTE);
      mailbox.hold(heldAt(mailbox.now));
    }
    mailbox.runUntil(NOON + 3 * HOUR);
    expect(mailbox.mails).to.have.lengthOf(MAILS_PER_HOUR_MAX + 1);
    expect(mailbox.mails.at(-1)).to.deep.equal({
      at: NOON + HOUR,
      about: `${NOON + MAILS_PER_HOUR_MAX * MINUTE}-${NOON + 29 * MINUTE}`,
    });
  });

  it("whatever is held, no hour has more mails than its limit, and every payment is in a mail", () => {
    const mailbox = new Mailbox();
    const held: HeldPayment[] = [];
    for (let second = 0; second < 4 * 3_600; second += 1 + (second % 97)) {
      mailbox.runUntil(NOON + second * 1_000);
      const payments = burst(mailbox.now, 1 + (second % 5));
      held.push(...payments);
      mailbox.hold(...payments);
    }
    mailbox.runUntil(NOON + 9 * HOUR);
    for (const { at } of mailbox.mails) {
      const inHour = mailbox.mails.filter((other) => other.at >= at && other.at < at + HOUR);
      expect(inHour.length, `mails from ${new Date(at).toISOString()}`).to.be.at.most(MAILS_PER_HOUR_MAX);
    }
    const isMailed = ({ approvalId, heldAt: at }: HeldPayment): boolean =>
      mailbox.mails.some(({ about }) => {
        const [since = 0, through = 0] = about.split("-").map(Number);
        return about === approvalId || (since <= at && at <= through);
      });
    expect(held.filter((each) => !isMailed(each))).to.deep.equal([]);
    expect(mailbox.step).to.deep.equal({ kind: "end" });
  });

  it("a mail that was not sent takes no place of the hour; one that was refused does", () => {
    const mailbox = new Mailbox();
    mailbox.hold(...burst(NOON, 2));
    mailbox.begin()("withdrawn");
    mailbox.begin()("refused");
    expect(mailbox.step).to.deep.equal({ kind: "wait", until: NOON + HOUR });
    mailbox.hold(...burst(NOON + 10, MAILS_PER_HOUR_MAX - 1));
    mailbox.runUntil(NOON);
    expect(mailbox.mails).to.have.lengthOf(MAILS_PER_HOUR_MAX - 1);
  });

  it("a failed mail is tried again after growing pauses, with what was held meanwhile, for a day", () => {
    const mailbox = new Mailbox();
    mailbox.end = "unsent";
    mailbox.hold(heldAt(NOON));
    mailbox.runUntil(NOON + MINUTE);
    expect(mailbox.mails.map(({ at }) => at - NOON)).to.deep.equal([0, 5_000, 20_000]);
    mailbox.hold(...burst(NOON + MINUTE, 30));
    mailbox.end = "sent";
    mailbox.runUntil(NOON + 2 * HOUR);
    expect(mailbox.mails.slice(3)).to.deep.equal([
      { at: NOON + 65_000, about: `${NOON}-${NOON + MINUTE + 29}` },
    ]);

    mailbox.end = "unsent";
    mailbox.hold(heldAt(mailbox.now));
    mailbox.runUntil(NOON + 72 * HOUR);
    expect(mailbox.mails).to.have.lengthOf(4 + MAIL_TRIES_MAX);
    expect((mailbox.mails.at(-1)?.at ?? 0) - NOON).to.be.within(24 * HOUR, 27 * HOUR);
    expect(mailbox.step).to.deep.equal({ kind: "end" });
  });

  it("what is held while a mail is on its way waits for the next one", () => {
    const mailbox = new Mailbox();
    mailbox.hold(...burst(NOON, 20));
    const end = mailbox.begin();
    mailbox.hold(heldAt(NOON + 30));
    end("sent");
    mailbox.runUntil(NOON);
    expect(mailbox.mails).to.deep.equal([{ at: NOON, about: `apr_${NOON + 30}` }]);
  });

  it("a person who wants no mail gets none of what waits, and their hour is still counted", () => {
    const mailbox = new Mailbox();
    mailbox.hold(...burst(NOON, 3));
    mailbox.runUntil(NOON);
    mailbox.hold(...burst(NOON + 10, 3));
    mailbox.begin()("unwanted");
    expect(mailbox.step).to.deep.equal({ kind: "wait", until: NOON + HOUR });
  });
});
