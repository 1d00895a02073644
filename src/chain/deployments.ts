import { type Deployment, GAS } from "./contracts.ts";
import type { Finality } from "./finality.ts";
import { type Call, type ChainOutbox, isTransaction, type Recorded } from "./outbox.ts";
import type { ChainRpc } from "./rpc.ts";

export interface DeploymentDependencies {
  readonly rpc: ChainRpc;
  readonly outbox: ChainOutbox;
  readonly finality: Finality;
  readonly broadcast: (recorded: Iterable<Recorded>) => Promise<void>;
}

/**
 * Deploys missing contracts, and waits up to `withinMs` for them. Returns the names of those that are still missing.
 */
export async function ensureDeployed(
  { broadcast, finality, outbox, rpc }: DeploymentDependencies,
  expected: Readonly<Record<string, Deployment>>,
  withinMs: number,
  which: "what is missing" | "also what is there" = "what is missing",
): Promise<readonly string[]> {
  const isAll = which === "also what is there";
  const deployed = isAll ? Object.entries(expected) : await missingOf(rpc, expected);
  if (deployed.length === 0) return [];
  const calls = deployed.map(([name, deployment]) => callOf(name, deployment));
  const sent = [...(await outbox.record(calls)).values()].filter(isTransaction);
  await broadcast(sent);
  // A local chain no longer has the receipt of an old deployment.
  const awaited = (await missingOf(rpc, expected)).length === 0 ? [] : sent;
  await Promise.all(awaited.map((transaction) => finality.wait(transaction, withinMs)));
  return (await missingOf(rpc, expected)).map(([name]) => name);
}

async function missingOf(rpc: ChainRpc, expected: Readonly<Record<string, Deployment>>) {
  const named = Object.entries(expected);
  const isDeployed = await Promise.all(named.map(([, { address }]) => rpc.hasCode(address)));
  return named.filter((_deployment, at) => isDeployed[at] === false);
}

const callOf = (name: string, { data, to }: Deployment): Call => ({
  kind: "call",
  purpose: `contract/${name}`,
  wallet: null,
  to,
  data,
  gas: GAS.deployContract,
  isRepeated: true,
});
