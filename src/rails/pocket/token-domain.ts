import { type Address, domainSeparator, type Hex, parseAbi } from "viem";
import type { ChainConfig } from "../../chain/config.ts";
import type { ChainRpc } from "../../chain/rpc.ts";

/** The EIP-712 domain under which the configured token checks signatures. */
export interface TokenDomain {
  readonly name: string;
  readonly version: string;
  readonly chainId: number;
  readonly verifyingContract: Address;
}

const ABI = parseAbi([
  "function name() view returns (string)",
  "function version() view returns (string)",
  "function DOMAIN_SEPARATOR() view returns (bytes32)",
]);

/** The token's name and version do not give its domain separator, so no signature would be valid. */
export class UnusableToken extends Error {
  override readonly name = "UnusableToken";
}

/**
 * Reads the domain from the token and compares it with the token's separator: with a wrong name or version, nobody
 * could settle the signatures. Read until the first answer.
 */
export class TokenDomains {
  readonly #rpc: ChainRpc;
  readonly #config: ChainConfig;
  #read: Promise<TokenDomain> | null = null;

  constructor(rpc: ChainRpc, config: ChainConfig) {
    this.#rpc = rpc;
    this.#config = config;
  }

  read(): Promise<TokenDomain> {
    this.#read ??= this.#readOnce().catch((error: unknown) => {
      this.#read = null;
      throw error;
    });
    return this.#read;
  }

  async #readOnce(): Promise<TokenDomain> {
    const { chainId, token } = this.#config;
    await this.#rpc.check();
    const { client } = this.#rpc;
    const read = { address: token, abi: ABI } as const;
    const [name, version, separator] = await Promise.all([
      this.#rpc.answer(client.readContract({ ...read, functionName: "name" })),
      this.#rpc.answer(client.readContract({ ...read, functionName: "version" })),
      this.#rpc.answer(client.readContract({ ...read, functionName: "DOMAIN_SEPARATOR" })),
    ]);
    const domain = { name, version, chainId, verifyingContract: token };
    if (separatorOf(domain) !== separator) {
      throw new UnusableToken("the token's name and version do not give its EIP-712 domain separator");
    }
    return domain;
  }
}

const separatorOf = (domain: TokenDomain): Hex => domainSeparator({ domain });
