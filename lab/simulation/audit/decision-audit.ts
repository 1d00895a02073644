import type { CommandOf, LedgerReply } from "../../../src/domain/ledger/commands.ts";
import { type AccountModel, MC, type PaymentModel, isClosed, type Verdict } from "./account-model.ts";
import { BookedPayment } from "./booked-payment.ts";
import { type WorldModel, expectDenial } from "./books.ts";
import type { LedgerShown } from "./observer.ts";
import { must, mustEqual } from "./violation.ts";

type Reply<K extends LedgerReply["kind"]> = Extract<LedgerReply, { readonly kind: K }>;

/** Expectations about decisions on payments: once for each key, and by the limits, caps and rules of the moment. */
export class DecisionAudit {
  readonly #books: WorldModel;

  constructor(books: WorldModel) {
    this.#books = books;
  }

  expect(command: CommandOf<"pay">, reply: LedgerReply, { bounds, now }: LedgerShown): void {
    const { agentId, keyId, request } = command;
    const model = this.#books.account(agentId);
    const known = model.byKey.get(request.keyHash);
    if (known !== undefined) return this.#expectReplay(known, model, command, reply);
    if (model.status === "closed") return mustEqual(reply.kind, "no_account", "a closed account's payment");
    if (model.keyId !== keyId) {
      this.#books.count("payment by a dead key");
      return mustEqual(reply.kind, "inactive_key", "a dead key's payment");
    }
    must(
      !this.#books.life(agentId).deadKeys.has(keyId),
      "a key pays of which its owner was answered that it is dead",
    );
    if (reply.kind === "records_check_required") {
      this.#books.count("look up");
      return must(model.payments.some(isClosed), "a look-up, and nothing was closed");
    }
    if (this.#books.isOutdated(model, request.rulesVersions)) {
      this.#books.count("stale rules");
      return mustEqual(reply.kind, "stale_rules", "a payment that was judged by old rules");
    }
    const own = model.open().length;
    const left = bounds.openOfProject - this.#books.openCount();
    if (own >= bounds.openOfAgent || own >= left / bounds.partsOfRest) {
      const of = own > 0 ? "agent" : "project";
      this.#books.count(`too many open of the ${of}`);
      must(reply.kind === "too_many_open", `a payment too many was answered ${reply.kind}`);
      must(
        reply.freesAt !== null && reply.freesAt > now - 1,
        "a payment too many, and nothing that frees room",
      );
      return mustEqual([reply.of, reply.bound], [of, "payments"], "a payment too many");
    }
    must(reply.kind === "decided", `a new key was answered ${reply.kind}`);
    this.#decided(model, command, reply, now);
  }

  #decided(
    model: AccountModel,
    command: CommandOf<"pay">,
    { decision, permit }: Reply<"decided">,
    now: number,
  ): void {
    const { agentId, approvalWindowSeconds, forbidden, request, rules } = command;
    const { amountMc, fingerprint, recipient, rulesVersions } = request;
    this.#books.expectRestricted(model, recipient, {
      ...(forbidden === undefined ? {} : { forbidden }),
      ...(rulesVersions === undefined ? {} : { rulesVersions }),
    });
    const seen = decision.denial?.code ?? null;
    const verdict = this.#books.verdict(model, amountMc, now, { seen, forbidden });
    const what = `a payment of ${amountMc / MC} by ${agentId}`;
    expectDenial(decision.denial, verdict, what);
    const flagged = decision.approval?.flaggedByRuleTypes ?? [];
    const flags = new Set<string>(flagged);
    if (verdict !== null) mustEqual(flagged, [], `what flags ${what}, which is denied`);
    else
      this.#expectFlags(flags, what, (windows) =>
        model.flags(amountMc, fingerprint, rules?.checks ?? [], { now, windows }),
      );
    mustEqual(new Set(flagged).size, flagged.length, "a type of rule that is named twice: types");
    const windowAt = this.#books.windowsAt(now);
    const payment = newPayment(model, command, { verdict, needsPerson: flags.size > 0, now, windowAt });
    if (decision.approval !== null)
      mustEqual(decision.approval.expiresAt, now + approvalWindowSeconds * 1_000, "the end of the window");
    mustEqual([decision.createdAt, decision.day], [now, payment.books.day], "when it was decided");
    mustEqual(decision.sequence, model.payments.length + 1, "the sequence");
    const { isArchiveAnswered } = this.#books.life(agentId);
    must(!isArchiveAnswered, "a payment was decided after its agent's archive was answered");
    this.#books.add(model, payment);
    mustEqual(permit !== null, verdict === null && !payment.needsPerson, `whether ${what} is permitted`);
    if (permit !== null) model.permitted(permit);
    this.#books.count(verdict?.code ?? (payment.needsPerson ? "held" : "sending"));
    for (const flag of flags) this.#books.count(`flagged: ${flag}`);
  }

  #expectFlags(
    flagged: ReadonlySet<string>,
    what: string,
    flagsOf: (windows: "exact" | "longest") => Set<string>,
  ): void {
    const [least, most] = [flagsOf("exact"), flagsOf("longest")];
    const expected = new Set([...least, ...[...most].filter((flag) => flagged.has(flag))]);
    mustEqual(inOrder(flagged), inOrder(expected), `what flags ${what}`);
  }

  /** A key that was used is never decided upon again, whatever the ledger has forgotten. */
  #expectReplay(
    known: PaymentModel,
    model: AccountModel,
    command: CommandOf<"pay">,
    reply: LedgerReply,
  ): void {
    this.#books.count(`known key: ${reply.kind}`);
    switch (reply.kind) {
      case "replayed":
        mustEqual(reply.transactionId, known.id, "the transaction of a replay");
        mustEqual(reply.samePayload, known.payloadHash === command.request.payloadHash, "the same payload");
        return mustEqual(reply.payment.status, known.status, "the status in a replay");
      case "recorded":
      case "records_check_required":
        return must(isClosed(known), `${known.id} is open, and was answered ${reply.kind}`);
      case "no_account":
        return must(model.status === "closed" && isClosed(known), "an account that is there was not found");
      case "inactive_key":
        return must(
          model.keyId !== command.keyId && isClosed(known),
          "a known key was answered inactive_key",
        );
      default:
        throw new Error(`a known key was answered ${reply.kind}`);
    }
  }
}

function newPayment(
  model: AccountModel,
  { approvalWindowSeconds, request }: CommandOf<"pay">,
  decided: {
    readonly verdict: Verdict | null;
    readonly needsPerson: boolean;
    readonly now: number;
    readonly windowAt: number;
  },
): PaymentModel {
  const { needsPerson, now, verdict, windowAt } = decided;
  const isAccepted = verdict === null;
  const { amountMc, fingerprint, keyHash, payloadHash, recipient, transactionId } = request;
  const day = model.dayOf(now);
  return {
    id: transactionId,
    agentId: model.agentId,
    keyHash,
    payloadHash,
    fingerprint,
    recipient,
    amountMc,
    books: new BookedPayment(amountMc, day, windowAt),
    createdAt: now,
    countedAt: model.countedAt(now),
    countedOn: day,
    expiresAt: now + approvalWindowSeconds * 1_000,
    needsPerson,
    isCounted: isAccepted,
    status: isAccepted ? "pending" : "denied",
    isOver: !isAccepted,
    approvedAt: null,
    isFollowed: false,
    isCaptured: false,
    rail: null,
    recorded: null,
    written: new Map(),
    isWithdrawn: false,
    revision: 1,
    confirmedRevision: 0,
  };
}

const inOrder = (names: Iterable<string>): string[] =>
  [...names].toSorted((one, other) => one.localeCompare(other));
