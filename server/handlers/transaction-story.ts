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
import { paymentIn } from "../../src/store/records.ts";
import { deliveryView } from "../../src/webhooks/views.ts";
import { auditEntryView, approvalView, transactionView } from "../../src/views/views.ts";
import { RAIL_FOLDERS } from "../../src/rails/rails.ts";
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
});

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
    const seesAll = isAdmin(principal);
    const recorded = recordsOf(collections, target);
    const [{ approval, transaction }, published, railSteps, decision, entries] = await Promise.all([
      recorded,
      recorded.then(eventsOf),
      RAIL_FOLDERS[target.rail].stepsOf(collections, target),
      decisionOn(target),
      seesAll ? entriesOf(target) : null,
    ]);
    const sent = seesAll ? await deliveriesOf(organizationId, published) : null;
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
    return { story, card, limits: decision?.limits ?? null, versions };
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

const decidedView = ({ flaggedByRuleTypes, outcome, policyVersion }: z.output<typeof decided>) => ({
  outcome,
  policyVersion,
  flaggedByRuleTypes,
});

interface PaymentRecords {
  readonly approval: ApprovalDocument | null;
  readonly transaction: TransactionDocument;
}

/** Whether the caller may read webhooks and the audit log. */
const isAdmin = (principal: ManagementPrincipal): boolean =>
  principal.type === "session" && isAdministrative(principal.role);
