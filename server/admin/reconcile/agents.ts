import type { AgentDocument, ApprovalDocument, TransactionDocument } from "../../../activities/documents.ts";
import { approvalDocument, transactionDocument } from "../../../activities/records.ts";
import { moneyOf } from "../../../src/domain/agent/payment.ts";
import { type OpenPayment, summarize } from "../../../src/domain/agent/state.ts";
import type { AgentStateView } from "../../../src/messages/agent.ts";
import type { AgentBooksRead } from "./books.ts";
import { ADVICE, type Difference, type DifferenceKind } from "./difference.ts";
import { cents } from "./rails.ts";

/** What is found of an agent, without what is the same for all of it. */
type Found = Pick<Difference, "kind" | "of" | "id" | "what" | "expected" | "found" | "advice"> &
  Partial<Pick<Difference, "repair" | "mayBeInFlight" | "steady">>;

/**
 * An agent's actor with its record, and with the records of its payments. The actor was asked first. A payment that it has
 * let go of was written down before for good, and what it has open is known exactly; so what they add up to agrees to the
 * cent at any moment, however busy the agent is.
 */
export function compareAgent(books: AgentBooksRead): readonly Difference[] {
  const { actor, agentId, record } = books;
  const place = { agentId, projectId: record?.projectId ?? books.transactions[0]?.projectId ?? null };
  return findingsOf(books, actor).map((found) => ({
    repair: null,
    mayBeInFlight: false,
    ...found,
    ...place,
  }));
}

function findingsOf(books: AgentBooksRead, actor: AgentBooksRead["actor"]): Found[] {
  const { agentId, record } = books;
  const who = { of: "agent", id: agentId } as const;
  if (actor === "lost") {
    const what = "the agent's actor";
    return [
      { ...who, kind: "actor_lost", what, expected: "running", found: "none", advice: ADVICE.lostActor },
    ];
  }
  if (actor === "silent") {
    const found = {
      what: "the agent's actor",
      expected: "an answer",
      found: "none",
      advice: ADVICE.silentActor,
    };
    return [{ ...who, ...found, kind: "actor_silent", mayBeInFlight: true }];
  }
  return [
    ...(record === null ? [lostRecord(agentId)] : compareRecord(actor, record)),
    ...compareSequence(actor, books.transactions),
    ...compareSum(actor, books.transactions),
    ...compareOpen(actor, books),
    ...compareClosed(actor, books),
  ];
}

const lostRecord = (agentId: string): Found => ({
  kind: "agent_record_lost",
  of: "agent",
  id: agentId,
  what: "the agent's record",
  expected: "one, since its actor runs",
  found: "none",
  advice: ADVICE.lostAgent,
});

/** The record follows its actor: never below what the actor knows to be written, and the same at the same revision. */
function compareRecord(actor: AgentStateView, record: AgentDocument): Found[] {
  const summary = summarize(actor);
  const found = { kind: "agent_record_differs", of: "agent", id: record._id } as const;
  const revisions = {
    what: "the revision of the agent's record",
    expected: String(summary.revision),
    found: String(record.revision),
  };
  const repair = { kind: "agent_record", agentId: record._id, summary } as const;
  if (record.revision > summary.revision) {
    // A busy agent's record is of another revision at the next look; one that stays ahead is not its actor's work.
    return [{ ...found, ...revisions, advice: ADVICE.ahead, steady: revisions.found, mayBeInFlight: true }];
  }
  if (record.revision < summary.revision) {
    const mayBeInFlight = record.revision >= actor.confirmedRevision;
    return [
      { ...found, ...revisions, advice: ADVICE.repair, repair, mayBeInFlight, steady: revisions.found },
    ];
  }
  const shown = shownBy(record);
  const wanted: Readonly<Record<string, unknown>> = {
    name: summary.name,
    lifecycle: summary.lifecycle,
    archivedAt: summary.archivedAt,
    walletDetached: summary.walletDetached,
    policy: flat(summary.policy),
    policyVersion: summary.policyVersion,
    spentCents: summary.spentCents,
    reservedCents: summary.reservedCents,
    ...(summary.keyId === undefined ? {} : { keyId: summary.keyId }),
  };
  const advice = ADVICE.repair;
  return differing(wanted, shown).map(([field, expected, actual]) => {
    const what = `${field} in the agent's record`;
    return { ...found, what, expected, found: actual, advice, repair };
  });
}

const shownBy = (record: AgentDocument): Readonly<Record<string, unknown>> => ({
  name: record.name,
  lifecycle: record.lifecycle,
  archivedAt: record.archivedAt?.getTime() ?? null,
  walletDetached: record.walletDetached ?? false,
  policy: flat(record.policy),
  policyVersion: record.policyVersion,
  spentCents: record.spentCents,
  reservedCents: record.reservedCents,
  keyId: record.key?.id ?? null,
});

/** In one order of its fields, whoever wrote it. */
const flat = (fields: object): string =>
  JSON.stringify(Object.entries(fields).toSorted(([one], [other]) => (one < other ? -1 : 1)));

/** The fields that are not as they should be, with both. */
function differing(
  wanted: Readonly<Record<string, unknown>>,
  actual: Readonly<Record<string, unknown>>,
): [field: string, wanted: string, actual: string][] {
  return Object.entries(wanted)
    .filter(([field, value]) => actual[field] !== value)
    .map(([field, value]) => [field, String(value), String(actual[field])]);
}

/** Every decision is numbered by the actor: a gap is a record that is lost, a double one is nobody's decision. */
function compareSequence(actor: AgentStateView, transactions: readonly TransactionDocument[]): Found[] {
  const known = new Set(Object.values(actor.open).map(({ payment }) => payment.sequence));
  const seen = new Set<number>();
  const unknown = transactions.filter(({ _id, sequence }) => {
    const isSecond = seen.has(sequence);
    seen.add(sequence);
    const isOpenElsewhere = known.has(sequence) && actor.open[_id] === undefined;
    return isSecond || isOpenElsewhere || sequence > actor.sequence || sequence < 1;
  });
  const lost: Found[] = [];
  for (let sequence = 1; sequence <= actor.sequence; sequence += 1) {
    if (seen.has(sequence) || known.has(sequence)) continue;
    const { agentId } = actor.profile;
    const what = `the record of the agent's payment number ${String(sequence)}, which its actor has seen through`;
    const found = { of: "agent", id: agentId, what, expected: "one", found: "none" } as const;
    lost.push({ ...found, kind: "payment_record_lost", advice: ADVICE.lostPayment });
  }
  return [
    ...lost,
    ...unknown.map(({ _id, sequence }): Found => {
      const what = `a record as the agent's payment number ${String(sequence)}`;
      const found = { of: "payment", id: _id, what, expected: "none", found: "one" } as const;
      return { ...found, kind: "payment_record_unknown", advice: ADVICE.unknownPayment };
    }),
  ];
}

/** What the actor says that it has spent is what its open payments and the records of all others say. */
function compareSum(actor: AgentStateView, transactions: readonly TransactionDocument[]): Found[] {
  const { open, profile, sequence, usage } = actor;
  const closed = transactions
    .filter((one) => one.sequence <= sequence && open[one._id] === undefined && one.status === "approved")
    .reduce((sum, { amountCents }) => sum + amountCents, 0);
  const sums = { spent: closed, reserved: 0, none: 0 };
  for (const { payment } of Object.values(open)) sums[moneyOf(payment)] += payment.request.amountCents;
  const compared = [
    ["spent", usage.spentCents, sums.spent],
    ["reserved", usage.reservedCents, sums.reserved],
  ] as const;
  return compared
    .filter(([, said, sum]) => said !== sum)
    .map(([name, said, sum]) => ({
      kind: "payments_sum_differs",
      of: "agent",
      id: profile.agentId,
      what: `the sum over the agent's payments, ${name}`,
      expected: `${cents(said)}, as its actor says`,
      found: cents(sum),
      advice: ADVICE.sum,
      steady: String(said - sum),
    }));
}

/** The records of what the actor has open. */
function compareOpen(actor: AgentStateView, { approvals, transactions }: AgentBooksRead): Found[] {
  const recorded = new Map(transactions.map((transaction) => [transaction._id, transaction]));
  const asked = new Map(approvals.map((approval) => [approval._id, approval]));
  return Object.values(actor.open).flatMap((open) => {
    const { payment } = open;
    const wanted = transactionDocument(actor.profile, payment);
    const record = recorded.get(wanted._id) ?? null;
    const found = compareRevised("payment", open, wanted, record, PAYMENT_FIELDS);
    const approval = approvalDocument(actor.profile, payment);
    // An approval's record is written with its payment's; one that is gone while the payment is not was removed.
    const beside =
      approval === null || record === null
        ? []
        : compareRevised("approval", open, approval, asked.get(approval._id) ?? null, APPROVAL_FIELDS);
    const repair = { kind: "payment_records", profile: actor.profile, payment } as const;
    return [...found, ...beside].map((each) => (each.advice === ADVICE.repair ? { ...each, repair } : each));
  });
}

const PAYMENT_FIELDS = [
  "organizationId",
  "projectId",
  "teamId",
  "agentId",
  "keyHash",
  "sequence",
  "amountCents",
  "merchant",
  "comparedMerchant",
  "rail",
  "status",
  "denialCode",
  "feedback",
  "approvalId",
  "onChainTxHash",
] as const;
const APPROVAL_FIELDS = [
  "transactionId",
  "agentId",
  "amountCents",
  "state",
  "resolution",
  "feedback",
] as const;

const KINDS = {
  payment: "payment_record_differs",
  approval: "approval_record_differs",
} as const satisfies Record<string, DifferenceKind>;

/** A record that is written by revisions, with what the actor has at its own. */
function compareRevised<T extends TransactionDocument | ApprovalDocument>(
  of: "payment" | "approval",
  { confirmedRevision, payment }: OpenPayment,
  wanted: T,
  record: T | null,
  fields: readonly string[],
): Found[] {
  const found = { kind: KINDS[of], of, id: wanted._id } as const;
  const advice = ADVICE.repair;
  if (record === null) {
    const what = `the record of an open ${of}`;
    const mayBeInFlight = confirmedRevision === 0;
    return [{ ...found, what, expected: "one", found: "none", advice, mayBeInFlight }];
  }
  const revision = { expected: String(payment.revision), found: String(record.revision) };
  const what = `the revision of the record of an open ${of}`;
  if (record.revision > payment.revision)
    return [{ ...found, ...revision, what, advice: ADVICE.ahead, mayBeInFlight: true }];
  if (record.revision < payment.revision)
    return [{ ...found, ...revision, what, advice, mayBeInFlight: record.revision >= confirmedRevision }];
  const pick = (document: T) => Object.fromEntries(fields.map((field) => [field, document[field]]));
  return differing(pick(wanted), pick(record)).map(([field, expected, actual]) => {
    return { ...found, what: `${field} in the record of an open ${of}`, expected, found: actual, advice };
  });
}

/** What the actor has let go of changes no more: it has an end, and its approval's record says the same. */
function compareClosed(actor: AgentStateView, { approvals, transactions }: AgentBooksRead): Found[] {
  const asked = new Map(approvals.map((approval) => [approval._id, approval]));
  const closed = transactions.filter(
    (one) => actor.open[one._id] === undefined && one.sequence <= actor.sequence,
  );
  return closed.flatMap(({ _id, approvalId, revision, status }): Found[] => {
    const advice = ADVICE.closedPayment;
    if (status === "pending") {
      const what = "the status of a payment that its actor has seen through";
      return [
        {
          kind: "payment_record_differs",
          of: "payment",
          id: _id,
          what,
          expected: "an end",
          found: status,
          advice,
        },
      ];
    }
    if (approvalId === null) return [];
    const approval = asked.get(approvalId);
    const actual =
      approval === undefined ? "no record" : `${approval.state}, revision ${String(approval.revision)}`;
    const expected = `completed, revision ${String(revision)}`;
    if (actual === expected) return [];
    const what = "the approval of a payment that its actor has seen through";
    return [
      {
        kind: "approval_record_differs",
        of: "approval",
        id: approvalId,
        what,
        expected,
        found: actual,
        advice,
      },
    ];
  });
}
