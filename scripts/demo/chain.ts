import { createPublicClient, getAddress, type Hash, http, parseEventLogs } from "viem";
import { agentWalletAbi } from "../../contracts/artifacts/index.ts";
import { StepDiffers } from "./stage.ts";

/** What a transaction on the chain has paid, read from the chain itself and from nothing of the service. */
export async function spentOnChain(rpcUrl: string, hash: string) {
  const client = createPublicClient({ transport: http(rpcUrl) });
  const receipt = await client.getTransactionReceipt({ hash: asHash(hash) });
  const [spent] = parseEventLogs({ abi: agentWalletAbi, eventName: "Spent", logs: receipt.logs });
  if (spent === undefined) throw new StepDiffers(`${hash} has paid nothing`);
  const { amount, to } = spent.args;
  return { wallet: getAddress(spent.address), to, amount, blockNumber: receipt.blockNumber };
}

const isHash = (text: string): text is Hash => /^0x[0-9a-f]{64}$/.test(text);

function asHash(text: string): Hash {
  if (!isHash(text)) throw new StepDiffers(`${text} is no transaction hash`);
  return text;
}
