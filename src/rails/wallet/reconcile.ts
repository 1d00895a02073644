import {
  type Address,
  createPublicClient,
  getAbiItem,
  getAddress,
  type Hash,
  type Hex,
  http,
  isAddress,
  keccak256,
  type PublicClient,
  toBytes,
} from "viem";
import { agentWalletAbi, sandboxTokenDeployment } from "../../chain/contracts.ts";
import { SETTLES_ON } from "../../domain/ledger/payment.ts";
import { grouped, type PaymentEntry, type RailFinding } from "../findings.ts";
import type { RailReconciliation } from "../folder.ts";

const CHAIN_MS = 10_000;
/** Of the sandbox's token, and of most stablecoins. */
const TOKEN_DECIMALS = 6;
const CENT_DECIMALS = 2;
/** Wallets in one call for events. */
const WALLETS_AT_ONCE = 200;

/** Compares payments with what their agents' wallets have spent on the chain. */
export const walletReconciliation: RailReconciliation = {
  kind: "chain_differs",
  advice: "Compare the payment, `chain_transactions` and the chain; the chain is what was really paid.",
  async findings({ chainRpcUrl, collections, env, organizationId, paymentIds, payments }) {
    if (chainRpcUrl === null) return [];
    const agents = await collections.agents.find({ organizationId, wallet: { $ne: null } }).toArray();
    const spender = agents[0]?.wallet?.spender;
    if (spender === undefined) return [];
    const transport = http(chainRpcUrl, { retryCount: 1, timeout: CHAIN_MS });
    try {
      const wallets = agents.map(({ wallet }) => addressOf(wallet?.address ?? ""));
      const spent = await spentEvents(
        createPublicClient({ transport, cacheTime: 0 }),
        wallets,
        tokenOf(env, spender),
      );
      return compareWallets({
        payments: paymentIds === null ? payments : payments.filter(({ id }) => paymentIds.has(id)),
        walletOf: new Map(agents.map(({ _id, wallet }) => [_id, wallet?.address ?? ""])),
        unitsPerCent: unitsInCent(env),
        spent,
      });
    } catch (error) {
      const reason = error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
      return `The chain could not be read, wallets were not compared: ${reason}`;
    }
  },
};

function tokenOf(env: NodeJS.ProcessEnv, spender: string): Address {
  const named = env["EVM_TOKEN_ADDRESS"];
  return named === undefined ? sandboxTokenDeployment(addressOf(spender)).address : addressOf(named);
}

const unitsInCent = (env: NodeJS.ProcessEnv): bigint =>
  10n ** BigInt(Number(env["EVM_TOKEN_DECIMALS"] ?? TOKEN_DECIMALS) - CENT_DECIMALS);

/** What a wallet on the chain says that it has paid. */
export interface SpentEvent {
  readonly wallet: Address;
  readonly id: Hex;
  readonly to: Address;
  readonly units: bigint;
  readonly hash: Hash;
}

/** What wallets and their payments are compared with. */
export interface WalletSources {
  readonly payments: readonly PaymentEntry[];
  /** The wallet of each agent that has one. */
  readonly walletOf: ReadonlyMap<string, string>;
  readonly spent: readonly SpentEvent[];
  /** Units of the token in a cent. */
  readonly unitsPerCent: bigint;
}

/**
 * One `Spent` event for each approved wallet payment, from its agent's wallet, and none for others. The chain must have been
 * read after the payments.
 */
export function compareWallets({
  payments,
  spent,
  unitsPerCent,
  walletOf,
}: WalletSources): readonly RailFinding[] {
  const events = grouped(spent, ({ id }) => id);
  const paid = payments.filter(({ rail, status }) => SETTLES_ON[rail] === "chain" && status === "approved");
  const names = new Map(payments.map(({ id }) => [keccak256(toBytes(id)), id]));
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
    if (paidIds.has(id)) continue;
    const what = `the chain's transaction ${hash} spent ${String(units)} units`;
    findings.push({
      id: names.get(id) ?? id,
      what,
      expected: "an approved payment",
      found: "none",
      mayBeInFlight: true,
    });
  }
  return findings;
}

/** Everything that these wallets have ever spent of this token, as the chain says. */
export async function spentEvents(
  chain: PublicClient,
  wallets: readonly Address[],
  token: Address,
): Promise<readonly SpentEvent[]> {
  const events: SpentEvent[] = [];
  for (let at = 0; at < wallets.length; at += WALLETS_AT_ONCE) {
    const logs = await chain.getLogs({
      address: wallets.slice(at, at + WALLETS_AT_ONCE),
      event: getAbiItem({ abi: agentWalletAbi, name: "Spent" }),
      fromBlock: 0n,
      strict: true,
    });
    for (const { address, args, transactionHash: hash } of logs) {
      if (args.token !== token) continue;
      events.push({ wallet: addressOf(address), id: args.id, to: args.to, units: args.amount, hash });
    }
  }
  return events;
}

export function addressOf(text: string): Address {
  if (isAddress(text, { strict: false })) return getAddress(text);
  throw new Error(`"${text}" is no address`);
}
