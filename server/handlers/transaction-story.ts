import { z } from "zod";
import { type AuditDocument, isGenuine } from "../../src/store/audit-documents.ts";
import { BREACH_LEVELS } from "../../src/domain/ledger/books.ts";
import { EXPLAINED_LIMITS } from "../../src/domain/ledger/measures.ts";
import { paymentEvents } from "../../src/domain/events.ts";
import { deliveryId } from "../../src/domain/webhooks/delivery-id.ts";
import type { ApprovalDocument, EventDocument, TransactionDocument } from "../../src/store/documents.ts";
import { ok } from "../../src/domain/result.ts";
import { isAdministrative } from "../../src/domain/roles.ts";
import type { ManagementPrincipal } from "../../src/identity/principals.ts";
import { recordsOf } from "../../src/store/held-payments.ts";
import { paymentIn } from "../../src/store/payment-records.ts";
import { deliveryView } from "../../src/webhooks/views.ts";
import { auditEntryView, approvalView, transactionView } from "../../src/views/views.ts";
import { RAIL_FOLDERS } from "../../src/rails/rails.ts";
import { comparedPayment } from "../../src/domain/rules/checks.ts";
import { flaggedThen, forbiddenCode } from "../../src/domain/rules/explained.ts";
import { RESTRICTED_LEVELS } from "../../src/domain/rules/restrictions.ts";
import { PastRulesReader } from "./past-rules.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import { paymentCardView } from "./payments.ts";
import type { Handlers } from "./types.ts";

/** Exceeds the entries of any payment: its decisions, and the refusals that concern it. */
const ENTRIES_MAX = 50;

const version = z.int().nullable();

/** Format of the audit log (src/domain/audit/payment-decisions.ts). */
const decided = z.object({
  outcome: z.enum(["approved", "held", "denied"]),
  policyVersion: z.int().nullable(),
  flaggedByRuleTypes: z.array(z.string()),
  limits: z
    .array(
      z.object({
        level: z.enum(BREACH_LEVELS),
        limit: z.enum(EXPLAINED_LIMITS),
        value: z.int(),
        used: z.int(),
      }),
    )
    .nullable()
    .optional(),
  rulesVersions: z.object({ project: version, team: version, agent: version }).optional(),
  wouldHaveFlagged: z.array(z.string()).default([]),
});
type Decided = z.output<typeof decided>;

/** Assembles everything known of one payment from the places where each part is kept. */
export function transactionStoryHandlers({
  auditSeal,
  baseUrl,
  collections,
  webhooks: {
    collections: { deliveries, endpoints },
  },
}: HandlerDependencies): Pick<Handlers, "getTransactionExplanation" | "getTransactionStory"> {
  const { auditLog, events } = collections;
  const pastRules = new PastRulesReader(collections, auditSeal);

  /** Event ids are derived from the payment's. */
  const eventsOf = ({ approval, transaction }: PaymentRecords): Promise<EventDocument[]> =>
    events
      .find({ _id: { $in: paymentEvents(paymentIn(transaction, approval)).map(({ id }) => id) } })
      .sort({ createdAt: 1, _id: 1 })
      .toArray();

  /** Delivery ids are derived from event and endpoint, so no index is needed. */
  async function deliveriesOf(organizationId: string, ofPayment: readonly EventDocument[]) {
    const endpointDocuments = await endpoints.find({ organizationId }, { projection: { _id: 1 } }).toArray();
    const named = new Map(
      endpointDocuments.flatMap(({ _id: endpointId }) =>
        ofPayment.map(({ _id: eventId, createdAt }) => [
          deliveryId(eventId, endpointId, createdAt.getTime()),
          { endpointId, eventId },
        ]),
      ),
    );
    const found = await deliveries.find({ _id: { $in: [...named.keys()] }, organizationId }).toArray();
    return found.flatMap((delivery) => {
      const ids = named.get(delivery._id);
      return ids === undefined ? [] : [{ ...ids, delivery: deliveryView(delivery) }];
    });
  }

  const genuine = (entries: readonly AuditDocument[], { organizationId }: TransactionDocument) =>
    entries.filter((entry) => isGenuine(entry, organizationId, auditSeal));

  async function entriesOf(transaction: TransactionDocument): Promise<AuditDocument[]> {
    const { _id, organizationId } = transaction;
    const about = auditLog.find({ organizationId, "resource.id": _id }).sort({ at: 1, _id: 1 });
    return genuine(await about.limit(ENTRIES_MAX).toArray(), transaction);
  }

  async function decisionOn(transaction: TransactionDocument) {
    const { _id, organizationId } = transaction;
    const found = await auditLog
      .find({ organizationId, entryKey: `${_id}/decided` })
      .limit(1)
      .toArray();
    const [entry] = genuine(found, transaction);
    return decided.safeParse(entry?.decision).data ?? null;
  }

  async function storyOf(target: TransactionDocument, principal: ManagementPrincipal) {
    const { organizationId } = target;
    const recorded = recordsOf(collections, target);
    const [{ approval, transaction }, published, railSteps, decision, entries] = await Promise.all([
      recorded,
      recorded.then(eventsOf),
      RAIL_FOLDERS[target.rail].stepsOf(collections, target),
      decisionOn(target),
      seesAuditLog(principal) ? entriesOf(target) : null,
    ]);
    const sent = isAdmin(principal) ? await deliveriesOf(organizationId, published) : null;
    const story = {
      transaction: transactionView(transaction),
      approval: approval && approvalView(approval),
      decision: decision && decidedView(decision),
      railSteps,
      events: published.map(({ _id, createdAt, type }) => ({
        id: _id,
        type,
        createdAt: createdAt.toISOString(),
      })),
      webhookDeliveries: sent,
      auditEntries: entries && entries.map(auditEntryView),
    };
    const policy = decision?.policyVersion ?? null;
    const versions = { ...(decision?.rulesVersions ?? NO_RULES), policy };
    const card = paymentCardView(transaction, baseUrl);
    const inForce =
      decision === null || !seesRules(principal) ? NOT_SHOWN : await inForceOver(target, decision);
    return { story, card, limits: decision?.limits ?? null, versions, ...inForce };
  }

  /** Rules and restrictions that a payment was judged by, the project's first. */
  async function inForceOver(transaction: TransactionDocument, decision: Decided) {
    const { agentId, organizationId, projectId, teamId } = transaction;
    const ids = { project: projectId, team: teamId, agent: agentId };
    const versions = decision.rulesVersions ?? NO_RULES;
    const found = await Promise.all(
      EXPLAINED_LEVELS.map(async (level) => {
        const revision = versions[level];
        if (revision === null) return { level, rules: [], restrictions: null };
        const then = await pastRules.at({ level, id: ids[level], organizationId }, revision);
        return then && { level, ...then };
      }),
    );
    const levels = found.filter((each) => each !== null);
    if (levels.length < found.length) return NOT_SHOWN;
    const { amountMc } = transaction.ledgerState;
    const payment = comparedPayment({ ...transaction, amountMc });
    const all = levels.flatMap(({ rules }) => rules);
    return {
      rules: levels.flatMap(({ level, rules }) =>
        rules.map((rule) => ({ level, rule, flagged: flaggedThen(rule, all, payment, decision) })),
      ),
      restrictions: levels.flatMap(({ level, restrictions }) =>
        restrictions === null
          ? []
          : [{ level, restrictions, forbidden: forbiddenCode(restrictions, payment) }],
      ),
    };
  }

  return {
    async getTransactionStory(_input, { principal, target }) {
      return ok({ body: (await storyOf(target, principal)).story });
    },

    async getTransactionExplanation(_input, { principal, target }) {
      const { story, ...explained } = await storyOf(target, principal);
      return ok({ body: { ...story, ...explained } });
    },
  };
}

const NO_RULES = { project: null, team: null, agent: null };
const EXPLAINED_LEVELS = RESTRICTED_LEVELS.toReversed();
/** Rules and restrictions are not recorded, or the caller may not read them. */
const NOT_SHOWN = { rules: null, restrictions: null };

const decidedView = ({ flaggedByRuleTypes, outcome, policyVersion }: Decided) => ({
  outcome,
  policyVersion,
  flaggedByRuleTypes,
});

interface PaymentRecords {
  readonly approval: ApprovalDocument | null;
  readonly transaction: TransactionDocument;
}

/** Whether the caller may read rules and restrictions of every level, which takes several scopes of a key. */
const seesRules = (principal: ManagementPrincipal): boolean => principal.type === "session";

/** Whether the caller may read the audit log. */
const seesAuditLog = (principal: ManagementPrincipal): boolean =>
  isAdmin(principal) ||
  (principal.type === "session" && principal.role === "auditor" && principal.binding.type === "organization");

/** Whether the caller may read webhooks. */
const isAdmin = (principal: ManagementPrincipal): boolean =>
  principal.type === "session" && isAdministrative(principal.role);
