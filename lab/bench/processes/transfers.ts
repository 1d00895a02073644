import { randomBytes } from "node:crypto";
import express from "express";
import {
  createNonceManager,
  createPublicClient,
  createTestClient,
  createWalletClient,
  getAddress,
  type Hex,
  http,
  toHex,
} from "viem";
import { jsonRpc } from "viem/nonce";
import { privateKeyToAccount } from "viem/accounts";
import { anvil } from "viem/chains";
import { sandboxUSDAbi, sandboxUSDArtifact } from "../../../contracts/artifacts/index.ts";
import { listen } from "../../../server/http/server.ts";
import { TRANSFER } from "../systems/system.ts";
import { type Role, runRole } from "./role.ts";

export interface TransfersConfig {
  readonly rpcUrl: string;
}

/** As often as the service asks, where viem's own default is 4 s. */
const POLLING_MS = 25;
const GAS_MONEY = 10n ** 24n;
const MINTED_UNITS = 10n ** 18n;
const UNITS_PER_CENT = 10_000n;

/**
 * A transfer of the same token by viem as its documentation shows it: `writeContract`, then
 * `waitForTransactionReceipt`. No wallet contract, no policy, no record, and nothing that survives a crash.
 */
await runRole(async (config): Promise<Role> => {
  const { rpcUrl } = config as TransfersConfig;
  const key: Hex = toHex(randomBytes(32));
  const account = privateKeyToAccount(key, { nonceManager: createNonceManager({ source: jsonRpc() }) });
  const shared = { chain: anvil, transport: http(rpcUrl), pollingInterval: POLLING_MS };
  const wallet = createWalletClient({ account, ...shared });
  const reader = createPublicClient(shared);
  await createTestClient({ mode: "anvil", ...shared }).setBalance({
    address: account.address,
    value: GAS_MONEY,
  });
  const mined = (hash: Hex) => reader.waitForTransactionReceipt({ hash });
  const { bytecode } = sandboxUSDArtifact;
  const deployed = await mined(
    await wallet.deployContract({ abi: sandboxUSDAbi, bytecode, args: [account.address] }),
  );
  const token = { address: getAddress(String(deployed.contractAddress)), abi: sandboxUSDAbi } as const;
  await mined(
    await wallet.writeContract({ ...token, functionName: "mint", args: [account.address, MINTED_UNITS] }),
  );

  const app = express();
  app.disable("etag");
  app.post("/transfers", async (_request, response) => {
    const args = [TRANSFER.recipient, BigInt(TRANSFER.amountCents) * UNITS_PER_CENT] as const;
    const hash = await wallet.writeContract({ ...token, functionName: "transfer", args });
    const { status } = await mined(hash);
    response.status(status === "success" ? 201 : 500).json({ hash });
  });
  const server = await listen("127.0.0.1", 0);
  server.serve(app);
  return {
    port: server.port,
    async answer() {
      const read = { ...token, functionName: "balanceOf", args: [TRANSFER.recipient] } as const;
      return Number((await reader.readContract(read)) / UNITS_PER_CENT) / TRANSFER.amountCents;
    },
    async stop() {
      await server.drain();
    },
  };
});
