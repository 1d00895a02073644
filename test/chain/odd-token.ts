import { type Address, createWalletClient, getAddress, http, parseAbi } from "viem";
import { compile } from "../../scripts/contracts/compiler.ts";
import { DEMO_OWNER } from "../../src/chain/sandbox.ts";
import { mined } from "../support/mined.ts";
import type { Scene } from "./support.ts";

/** A token that does what some real ones do. Anyone may set it up. */
const SOURCE = `// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

contract OddToken {
    mapping(address account => uint256) public balanceOf;
    mapping(address account => bool) public isBlocked;
    mapping(address account => bool) public isAnsweredFalse;
    bool public isPaused;
    uint256 public alwaysBurns;
    uint256 public burnsForContracts;

    event Transfer(address indexed from, address indexed to, uint256 value);

    function mint(address to, uint256 value) external { balanceOf[to] += value; }
    function setBlocked(address account, bool value) external { isBlocked[account] = value; }
    function setAnsweredFalse(address account) external { isAnsweredFalse[account] = true; }
    function setPaused(bool value) external { isPaused = value; }
    function setGas(uint256 always, uint256 forContracts) external {
        (alwaysBurns, burnsForContracts) = (always, forContracts);
    }

    function transfer(address to, uint256 value) external returns (bool) {
        require(!isPaused, "Pausable: paused");
        require(!isBlocked[msg.sender] && !isBlocked[to], "Blacklistable: account is blacklisted");
        if (isAnsweredFalse[to]) return false;
        // Not seen when the transfer is tried from the wallet's address, since that is then the origin.
        uint256 burnt = alwaysBurns + (tx.origin == msg.sender ? 0 : burnsForContracts);
        uint256 begin = gasleft();
        while (begin - gasleft() < burnt) {}
        balanceOf[msg.sender] -= value;
        balanceOf[to] += value;
        emit Transfer(msg.sender, to, value);
        return true;
    }
}
`;

/** More than the service offers. */
const FIRST = { maxFeePerGas: 200_000_000_000n, maxPriorityFeePerGas: 50_000_000_000n } as const;

const abi = parseAbi([
  "function mint(address to, uint256 value)",
  "function setBlocked(address account, bool value)",
  "function setAnsweredFalse(address account)",
  "function setPaused(bool value)",
  "function setGas(uint256 always, uint256 forContracts)",
]);

/** The token, and what its tests have it do. */
export interface OddToken {
  readonly address: Address;
  mint(to: Address, units: bigint): Promise<void>;
  setBlocked(account: Address, isBlocked: boolean): Promise<void>;
  /** Hands it over without waiting; a block has it before what the service sends. */
  beginBlocking(account: string): Promise<unknown>;
  setAnsweredFalse(account: Address): Promise<void>;
  setPaused(isPaused: boolean): Promise<void>;
  /** Gas that a transfer burns besides what it needs. */
  setGas(always: bigint, forContracts: bigint): Promise<void>;
}

export async function deployOddToken({ chain, config }: Scene): Promise<OddToken> {
  // anvil signs for its own accounts.
  const client = createWalletClient({ account: DEMO_OWNER, transport: http(config.rpcUrl) });
  const [compiled] = compile({ "test/OddToken.sol": SOURCE });
  if (compiled === undefined) throw new Error("the token compiles");
  const { bytecode } = compiled;
  const { contractAddress: address } = await mined(
    chain,
    await client.deployContract({ abi: [], bytecode, chain: null }),
  );
  if (address === null || address === undefined) throw new Error("the token is deployed");
  const at = { address, abi, chain: null } as const;
  const done = async (hash: Promise<`0x${string}`>): Promise<void> => {
    if ((await mined(chain, await hash)).status !== "success") throw new Error("the token was not set up");
  };
  return {
    address,
    mint: (to, units) => done(client.writeContract({ ...at, functionName: "mint", args: [to, units] })),
    setBlocked: (account, isBlocked) =>
      done(client.writeContract({ ...at, functionName: "setBlocked", args: [account, isBlocked] })),
    beginBlocking: (account) =>
      client.writeContract({
        ...at,
        functionName: "setBlocked",
        args: [getAddress(account), true],
        ...FIRST,
      }),
    setAnsweredFalse: (account) =>
      done(client.writeContract({ ...at, functionName: "setAnsweredFalse", args: [account] })),
    setPaused: (isPaused) =>
      done(client.writeContract({ ...at, functionName: "setPaused", args: [isPaused] })),
    setGas: (always, forContracts) =>
      done(client.writeContract({ ...at, functionName: "setGas", args: [always, forContracts] })),
  };
}
