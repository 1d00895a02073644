import {
  type Address,
  erc20Abi,
  getAbiItem,
  type Hash,
  type Hex,
  isHex,
  keccak256,
  type PublicClient,
  toBytes,
} from "viem";
import { tokenAbi } from "../../chain/contracts.ts";
import { COLLECTIONS } from "../../store/documents.ts";
import { alteredRecord, grouped, type PaymentEntry, type RailFinding } from "../findings.ts";
import type { RailReconciliation, RailSources } from "../folder.ts";
import { NO_FENCE } from "../rail-steps.ts";
import { addressOf, type SpentEvent, unreadChain, walletsOnChain } from "../wallet/spent-events.ts";
import { topUpId } from "./agent-pockets.ts";
import type { AuthorizationDocument } from "./authorizations.ts";
import type { PocketDocument } from "./reservations.ts";

/** Compares purchases with the transfers out of their agents' pockets on the chain. */
export const pocketReconciliation: RailReconciliation = {
  kind: "pocket_differs",
  advice:
    "Compare the payment, `pocket_authorizations` and the chain; the chain is what was really paid. For a transfer that nothing was signed for, archive the agent and find out who has the master key.",
  async findings(sources) {
    const wallets = await walletsOnChain(sources);
    if (wallets === null) return [];
    const { paymentIds, payments } = sources;
    const { chain, token, unitsPerCent, walletOf } = wallets;
    try {
      const { altered, pockets, signed } = await readPockets(sources, [...walletOf.keys()]);
      const addresses = pockets.map(({ address }) => address);
      const events = await pocketEvents(chain, addresses, token);
      const relevant = paymentIds === null ? payments : payments.filter(({ id }) => paymentIds.has(id));
      const found = comparePockets({ pockets, signed, events, payments: relevant, unitsPerCent });
      return [...altered, ...found];
    } catch (error) {
      return unreadChain("pockets", error);
    }
  },
};

/** Reads pockets and the authorizations they signed. Runs before the chain is read: later ones are used later. */
export async function readPockets(
  {
    accessProofs,
    collections,
    db,
    pocketKeys,
  }: Pick<RailSources, "accessProofs" | "collections" | "db" | "pocketKeys">,
  agentIds: readonly string[],
): Promise<
  Pick<PocketSources, "pockets" | "signed"> & {
    /** Authorizations that something other than the service has changed. */
    readonly altered: readonly RailFinding[];
  }
> {
  const own = { agentId: { $in: [...agentIds] } };
  const [records, authorizations, sweeps] = await Promise.all([
    db.collection<PocketDocument>(COLLECTIONS.pockets).find(own).toArray(),
    db
      .collection<AuthorizationDocument>(COLLECTIONS.pocketAuthorizations)
      .find({ ...own, ...NO_FENCE })
      .toArray(),
    collections.chainTransactions.find({ _id: /^eip155:\d+\/pocket\/sweep\// }).toArray(),
  ]);
  const signed = authorizations.map(({ _id, from, nonce, to, units }) => ({
    transactionId: _id.split("/").at(-2) ?? "",
    pocket: addressOf(from),
    nonce: hexOf(nonce),
    to: addressOf(to),
    units: BigInt(units),
  }));
  const signers = new Map(authorizations.map(({ agentId, from }) => [agentId, addressOf(from)]));
  const sweepsOf = grouped(sweeps, ({ _id }) => _id.split("/").at(-2) ?? "");
  const pockets = records.flatMap(({ agentId, topUps }) => {
    const address = pocketKeys?.addressOf(agentId) ?? signers.get(agentId);
    if (address === undefined) return [];
    const purposes = (sweepsOf.get(agentId) ?? []).map(({ _id }) => _id.replace(/^[^/]*\//, ""));
    return [{ agentId, address, topUps, sweeps: new Set(purposes.map((each) => keccak256(toBytes(each)))) }];
  });
  const altered = authorizations
    .filter((each) => accessProofs?.isGenuine("pocketAuthorization", each) === false)
    .map(({ _id }) => alteredRecord(_id.split("/").at(-2) ?? null, _id));
  return { altered, pockets, signed };
}

function hexOf(text: string): Hex {
  if (isHex(text)) return text;
  throw new Error(`"${text}" is not in hex`);
}

/** A pocket that was used at least once. */
export interface PocketEntry {
  readonly agentId: string;
  readonly address: Address;
  readonly topUps: number;
  /** Nonces of the transfers that returned money to the wallet. */
  readonly sweeps: ReadonlySet<Hex>;
}

export interface SignedEntry {
  readonly transactionId: string;
  readonly pocket: Address;
  readonly nonce: Hex;
  readonly to: Address;
  readonly units: bigint;
}

/** A transfer out of a pocket, as recorded on the chain. */
export interface PocketEvent {
  readonly pocket: Address;
  /** Null if no authorization moved the money. */
  readonly nonce: Hex | null;
  readonly to: Address;
  readonly units: bigint;
  readonly hash: Hash;
  /** Sender of the transaction. */
  readonly by: Address;
}

export interface PocketSources {
  readonly pockets: readonly PocketEntry[];
  readonly signed: readonly SignedEntry[];
  readonly events: readonly PocketEvent[];
  readonly payments: readonly PaymentEntry[];
  readonly unitsPerCent: bigint;
}

/** Maps the ids of top-ups, as wallets name them on the chain, to the pocket of each. */
export const topUpsOf = (pockets: readonly PocketEntry[]): ReadonlyMap<Hex, Address> =>
  new Map(
    pockets.flatMap(({ address, agentId, topUps }) =>
      Array.from(
        { length: topUps },
        (_none, at) => [keccak256(toBytes(topUpId(agentId, at + 1))), address] as const,
      ),
    ),
  );

/** Finds top-ups of pockets that went to another address. */
export const compareTopUps = (
  spent: readonly SpentEvent[],
  topUps: ReadonlyMap<Hex, Address>,
): readonly RailFinding[] =>
  spent.flatMap(({ hash, id, to }) => {
    const pocket = topUps.get(id);
    if (pocket === undefined || pocket === to) return [];
    const what = `the chain's transaction ${hash} is a top-up`;
    return [{ id, what, expected: pocket, found: to, mayBeInFlight: false }];
  });

/**
 * Checks that each approved purchase has one used authorization, and that nothing else left a pocket except transfers
 * back to its wallet and money taken by the wallet's owner. The chain must be read after the payments.
 */
export function comparePockets({
  events,
  payments,
  pockets,
  signed,
  unitsPerCent,
}: PocketSources): readonly RailFinding[] {
  const eventOf = new Map(events.map((event) => [keyOf(event.pocket, event.nonce), event]));
  const signedOf = grouped(signed, ({ transactionId }) => transactionId);
  const findings: RailFinding[] = [];
  const accounted = new Set<PocketEvent>();
  for (const payment of payments) {
    const own = signedOf.get(payment.id) ?? [];
    const found = own.flatMap(({ nonce, pocket }) => eventOf.get(keyOf(pocket, nonce)) ?? []);
    const [event] = found;
    if (own.length === 0 || payment.status !== "approved") continue;
    for (const each of found) accounted.add(each);
    const { id } = payment;
    if (event === undefined || found.length > 1) {
      const times = `paid ${String(found.length)} times`;
      const what = "the approved purchase on the chain";
      findings.push({ id, what, expected: "paid once", found: times, mayBeInFlight: false });
      continue;
    }
    const cents = (event.units + unitsPerCent - 1n) / unitsPerCent;
    // A payment without a transaction: nodes no longer had the event when they reported the authorization as used.
    const expected = [payment.amountCents, payment.to, payment.hash ?? event.hash].map(String).join(" ");
    const actual = [cents, event.to, event.hash].map(String).join(" ");
    const what = "cents, payee or transaction on the chain";
    if (expected !== actual) findings.push({ id, what, expected, found: actual, mayBeInFlight: false });
  }
  const sweeps = new Set(
    pockets.flatMap(({ address, sweeps: own }) => [...own].map((nonce) => keyOf(address, nonce))),
  );
  const byNonce = new Map(signed.map((each) => [keyOf(each.pocket, each.nonce), each.transactionId]));
  for (const event of events) {
    const { by, hash, nonce, pocket, to, units } = event;
    if (accounted.has(event) || sweeps.has(keyOf(pocket, nonce))) continue;
    // Moved by the permit, which only the wallet's owner has; the pocket itself never sends a transaction.
    if (nonce === null && by !== pocket) continue;
    findings.push({
      id: byNonce.get(keyOf(pocket, nonce)) ?? pocket,
      what: `the chain's transaction ${hash} took ${String(units)} units out of a pocket, to ${to}`,
      expected: "an approved purchase",
      found: "none",
      mayBeInFlight: nonce !== null,
    });
  }
  return findings;
}

const keyOf = (pocket: Address, nonce: Hex | null): string => `${pocket}/${nonce ?? ""}`;

/** Pockets per call for events. */
const POCKETS_AT_ONCE = 200;

/** Returns every transfer that ever left these pockets, according to the chain. */
export async function pocketEvents(
  chain: PublicClient,
  pockets: readonly Address[],
  token: Address,
): Promise<readonly PocketEvent[]> {
  const found: PocketEvent[] = [];
  for (let at = 0; at < pockets.length; at += POCKETS_AT_ONCE) {
    const some = pockets.slice(at, at + POCKETS_AT_ONCE);
    const common = { address: token, fromBlock: 0n, strict: true } as const;
    const [used, transfers] = await Promise.all([
      chain.getLogs({ ...common, event: USED, args: { authorizer: some } }),
      chain.getLogs({ ...common, event: TRANSFER, args: { from: some } }),
    ]);
    // A token logs the use of an authorization immediately before the transfer.
    const nonces = new Map(
      used.map(({ args, logIndex, transactionHash }) => [
        `${transactionHash}/${String(logIndex + 1)}/${args.authorizer}`,
        args.nonce,
      ]),
    );
    for (const { args, logIndex, transactionHash: hash } of transfers) {
      const nonce = nonces.get(`${hash}/${String(logIndex)}/${args.from}`) ?? null;
      const by = nonce === null ? (await chain.getTransaction({ hash })).from : args.from;
      const moved = { pocket: addressOf(args.from), to: addressOf(args.to), units: args.value };
      found.push({ ...moved, nonce, hash, by: addressOf(by) });
    }
  }
  return found;
}

const USED = getAbiItem({ abi: tokenAbi, name: "AuthorizationUsed" });
const TRANSFER = getAbiItem({ abi: erc20Abi, name: "Transfer" });
