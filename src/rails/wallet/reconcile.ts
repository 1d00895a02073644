import { keccak256, toBytes } from "viem";
import { SETTLES_ON } from "../../domain/ledger/payment.ts";
import { alteredRecord, grouped, type PaymentEntry, type RailFinding } from "../findings.ts";
import type { RailCollections, RailReconciliation, RailSources } from "../folder.ts";
import { compareTopUps, type PocketSources, readPockets, topUpsOf } from "../pocket/reconcile.ts";
import { NO_FENCE } from "../rail-steps.ts";
import { paymentOfAttempt } from "./attempts.ts";
import { addressOf, type SpentEvent, spentEvents, unreadChain, walletsOnChain } from "./spent-events.ts";

export const walletReconciliation: RailReconciliation = {
  kind: "chain_differs",
  advice: "Compare the payment, `chain_transactions` and the chain; the chain is what was really paid.",
  async findings(sources) {
    const wallets = await walletsOnChain(sources);
    if (wallets === null) return [];
    const { chain, token, unitsPerCent, walletOf } = wallets;
    const { collections, paymentIds, payments } = sources;
    const altered = await alteredRecords(sources, [...walletOf.values()]);
    try {
      const pockets = await readPockets(sources, [...walletOf.keys()]);
      const spent = await spentEvents(chain, [...walletOf.values()].map(addressOf), token);
      const known = paymentIds === null ? payments : payments.filter(({ id }) => paymentIds.has(id));
      // Of a few payments, others' events are told from theirs by their ids alone.
      const laterIds = paymentIds === null ? await sentLater(collections, known, spent) : [];
      const given = { payments: known, laterIds, walletOf, unitsPerCent, spent, pockets };
      return [...altered, ...compareWallets(given)];
    } catch (error) {
      return unreadChain("wallets", error);
    }
  },
};

/** Finds records of these wallets that something other than the service has changed. */
async function alteredRecords(
  { accessProofs, collections }: Pick<RailSources, "accessProofs" | "collections">,
  wallets: readonly string[],
): Promise<RailFinding[]> {
  if (accessProofs === null) return [];
  const altered: RailFinding[] = [];
  for await (const record of collections.chainTransactions.find({
    wallet: { $in: [...wallets] },
    ...NO_FENCE,
  }))
    if (!accessProofs.isGenuine("chainTransaction", record))
      altered.push(alteredRecord(paymentOfAttempt(record._id), record._id));
  return altered;
}

/** Ids of payments that were sent after the payments were read: the chain has their hashes alone. */
async function sentLater(
  { chainTransactions }: Pick<RailCollections, "chainTransactions">,
  payments: readonly PaymentEntry[],
  spent: readonly SpentEvent[],
): Promise<readonly string[]> {
  const hashes = payments.map(({ id }) => keccak256(toBytes(id)));
  const known = new Set(hashes);
  const wallets = new Set(spent.flatMap(({ id, wallet }) => (known.has(id) ? [] : [wallet])));
  const recorded = await chainTransactions
    .find({ wallet: { $in: [...wallets] } })
    .project<{ _id: string }>({ _id: 1 })
    .toArray();
  return recorded.flatMap(({ _id }) => paymentOfAttempt(_id) ?? []);
}

/** Sources of a comparison of wallets with their payments. */
export interface WalletSources {
  readonly payments: readonly PaymentEntry[];
  /** Of payments that were read too early to be among them. */
  readonly laterIds: readonly string[];
  /** The wallet of each agent that has one. */
  readonly walletOf: ReadonlyMap<string, string>;
  readonly spent: readonly SpentEvent[];
  readonly pockets: Pick<PocketSources, "pockets" | "signed">;
  readonly unitsPerCent: bigint;
}

/**
 * Checks that each approved wallet payment has one `Spent` event from its agent's wallet, and that there is no other.
 * The chain must be read after the payments.
 */
export function compareWallets({
  laterIds,
  payments,
  pockets: { pockets, signed },
  spent,
  unitsPerCent,
  walletOf,
}: WalletSources): readonly RailFinding[] {
  const events = grouped(spent, ({ id }) => id);
  const topUps = topUpsOf(pockets);
  const fromPockets = new Set(signed.map(({ transactionId }) => transactionId));
  const paid = payments.filter(
    ({ id, rail, status }) => SETTLES_ON[rail] === "chain" && status === "approved" && !fromPockets.has(id),
  );
  const ids = [...payments.map(({ id }) => id), ...laterIds];
  const names = new Map(ids.map((id) => [keccak256(toBytes(id)), id]));
  const paidIds = new Set(paid.map(({ id }) => keccak256(toBytes(id))));
  const findings: RailFinding[] = [];
  for (const { agentId, amountCents, hash, id, to } of paid) {
    const found = events.get(keccak256(toBytes(id))) ?? [];
    const [event] = found;
    if (event === undefined || found.length > 1) {
      const what = "the approved wallet payment on the chain";
      findings.push({
        id,
        what,
        expected: "paid once",
        found: `paid ${String(found.length)} times`,
        mayBeInFlight: false,
      });
      continue;
    }
    const expected = [BigInt(amountCents) * unitsPerCent, to, walletOf.get(agentId), hash]
      .map(String)
      .join(" ");
    const actual = [event.units, event.to, event.wallet, event.hash].map(String).join(" ");
    if (expected !== actual)
      findings.push({
        id,
        what: "units, recipient, wallet or transaction on the chain",
        expected,
        found: actual,
        mayBeInFlight: false,
      });
  }
  for (const { hash, id, units } of spent) {
    if (paidIds.has(id) || topUps.has(id)) continue;
    const what = `the chain's transaction ${hash} spent ${String(units)} units`;
    findings.push({
      id: names.get(id) ?? id,
      what,
      expected: "an approved payment",
      found: "none",
      mayBeInFlight: true,
    });
  }
  return [...findings, ...compareTopUps(spent, topUps)];
}
