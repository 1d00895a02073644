import type { RailPort } from "../payments/ports.ts";
import { NO_WALLET } from "./wallet/refusals.ts";
import type { AgentWallets } from "./wallet/wallets.ts";

/** This process cannot tell the payment's state; a process with the chain can. */
export class ChainNotConfigured extends Error {
  override readonly name = "ChainNotConfigured";
}

const elsewhere = (): Promise<never> =>
  Promise.reject(
    new ChainNotConfigured("this process has no chain; set EVM_RPC_URL as in the other processes"),
  );

/**
 * The wallet rail of a process without a chain. States only what every process would state: an agent without a wallet
 * cannot pay from one. Any other payment is unknown here, since a process with the chain may have sent it.
 */
export function walletRailWithoutChain(wallets: AgentWallets): RailPort {
  return {
    capabilities: { finality: "eventual" },
    network: null,
    async send({ agentId }) {
      return (await wallets.of(agentId)) === null ? { status: "failed", ...NO_WALLET } : elsewhere();
    },
    fence: elsewhere,
    query: elsewhere,
    settle: elsewhere,
    async withhold({ agentId }) {
      return (await wallets.of(agentId)) === null ? { status: "failed", ...NO_WALLET } : elsewhere();
    },
    async balance({ agentId }) {
      return { kind: (await wallets.of(agentId)) === null ? "none" : "unreadable" };
    },
    async detach({ agentId }) {
      return (await wallets.of(agentId)) === null ? "detached" : elsewhere();
    },
  };
}
