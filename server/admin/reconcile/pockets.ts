import { type Address, getAbiItem, type Hash, type Hex, keccak256, type PublicClient, toBytes } from "viem";
import { erc20Abi } from "viem";
import { tokenAbi } from "../../../src/chain/contracts.ts";
import { topUpId } from "../../../src/rails/pocket/agent-pockets.ts";
import { addressOf } from "./chain-reader.ts";
import { grouped, type RailFinding } from "./findings.ts";
import type { PaymentEntry, SpentEvent } from "./sources.ts";

/** A pocket that was ever used. */
export interface PocketEntry {
  readonly agentId: string;
  readonly address: Address;
  readonly topUps: number;
  /** Nonces of the transfers that brought its money back to the wallet. */
  readonly sweeps: ReadonlySet<Hex>;
}

/** What a pocket signed for a payment. */
export interface SignedEntry {
  readonly transactionId: string;
  readonly pocket: Address;
  readonly nonce: Hex;
  readonly to: Address;
  readonly units: bigint;
}

/** A transfer out of a pocket, as the chain has it. */
export interface PocketEvent {
  readonly pocket: Address;
  /** Null: no authorization moved it. */
  readonly nonce: Hex | null;
  readonly to: Address;
  readonly units: bigint;
  readonly hash: Hash;
  /** The sender of the transaction. */
  readonly by: Address;
}

export interface PocketSources {
  readonly pockets: readonly PocketEntry[];
  readonly signed: readonly SignedEntry[];
  readonly events: readonly PocketEvent[];
  readonly payments: readonly PaymentEntry[];
  readonly unitsPerCent: bigint;
}

/** The ids of top-ups, as wallets name them on the chain, and the pocket that each was for. */
export const topUpsOf = (pockets: readonly PocketEntry[]): ReadonlyMap<Hex, Address> =>
  new Map(
    pockets.flatMap(({ address, agentId, topUps }) =>
      Array.from(
        { length: topUps },
        (_none, at) => [keccak256(toBytes(topUpId(agentId, at + 1))), address] as const,
      ),
    ),
  );

/** Spends of wallets to their pockets that went elsewhere. */
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
 * One used authorization for each approved purchase, and nothing else out of a pocket but what went back to its wallet, and what
 * the wallet's owner took. The chain must have been read after the payments.
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
    const expected = [payment.amountCents, payment.to, payment.hash].map(String).join(" ");
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
    // By the permit, which only the wallet's owner has; the pocket itself never sends a transaction.
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

/** Pockets in one call for events. */
const POCKETS_AT_ONCE = 200;

/** Everything that ever left these pockets, as the chain says. */
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
    // A token says that it uses an authorization right before it moves the money.
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
