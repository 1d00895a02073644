import { randomBytes } from "node:crypto";
import { Mppx } from "mppx/server";
import { evm } from "mppx/evm/server";
import { type Address, getAddress, type Hex, parseAbi } from "viem";
import { listening, facilitatorOn } from "./shops.ts";
import type { HandMadeShop } from "./hand-made.ts";
import { somebody } from "./hand-made.ts";

const settleAbi = parseAbi([
  "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)",
  "function name() view returns (string)",
  "function version() view returns (string)",
]);

export interface MppShop extends Pick<HandMadeShop, "close" | "url"> {
  readonly payTo: Address;
}

/** A shop that mppx's own server runs; it settles with a key of its own. */
export async function openMppShop(rpcUrl: string, token: Address, amount: string): Promise<MppShop> {
  const { client } = await facilitatorOn(rpcUrl);
  const read = { address: token, abi: settleAbi } as const;
  const [name, version] = await Promise.all([
    client.readContract({ ...read, functionName: "name" }),
    client.readContract({ ...read, functionName: "version" }),
  ]);
  const payTo = somebody();
  const mppx = Mppx.create({
    methods: [
      evm.charge({
        currency: token,
        chainId: 31_337,
        decimals: 6,
        authorization: { name, version },
        recipient: payTo,
        async settle({ payload }) {
          const { from, nonce, signature, to, validAfter, validBefore, value } = payload;
          const args = [
            getAddress(from),
            getAddress(to),
            BigInt(value),
            BigInt(validAfter),
            BigInt(validBefore),
            nonce as Hex,
            signature as Hex,
          ] as const;
          const hash = await client.writeContract({
            ...read,
            functionName: "transferWithAuthorization",
            args,
          });
          await client.waitForTransactionReceipt({ hash });
          return { reference: hash };
        },
      }),
    ],
    realm: "a test",
    secretKey: randomBytes(32).toString("hex"),
  });
  const server = await listening((request, response) => {
    void (async () => {
      const url = `http://${request.headers.host ?? ""}${request.url ?? ""}`;
      const headers = new Headers();
      for (const [key, value] of Object.entries(request.headers))
        if (typeof value === "string") headers.set(key, value);
      const charged = await mppx.charge({ amount })(new Request(url, { headers }));
      const answer =
        charged.status === 402 ? charged.challenge : charged.withReceipt(Response.json({ data: "bought" }));
      // It offers x402 as well, which is tried elsewhere.
      const { "payment-required": _x402, ...shown } = Object.fromEntries(answer.headers);
      response.writeHead(answer.status, shown);
      response.end(Buffer.from(await answer.arrayBuffer()));
    })().catch((error: unknown) => void response.writeHead(500).end(String(error)));
  });
  return { ...server, payTo };
}
