import type { Address, Hex } from "viem";
import { compile } from "../../../scripts/contracts/compiler.ts";
import { deployedAt } from "./calls.ts";
import type { Chain } from "./chain.ts";

/** Tokens that do not do what they should. Anyone has as much of them as they say. */
const SOURCE = `// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// Says that nothing was moved, without reverting.
contract FalseToken {
    function transfer(address, uint256) external pure returns (bool) {
        return false;
    }
}

/// Says nothing, as some old tokens do.
contract SilentToken {
    event Transfer(address indexed from, address indexed to, uint256 value);

    function transfer(address to, uint256 value) external {
        emit Transfer(msg.sender, to, value);
    }
}

interface IWallet {
    function spend(bytes32 id, address token, address to, uint256 amount) external;
    function setLimit(address token, uint256 cap, uint64 periodSeconds) external;
}

/// Is the wallet's spender itself, and calls back into it while it is being paid with.
contract ReentrantToken {
    bytes32 public idInside;
    uint256 public moved;

    function setLimit(IWallet wallet, uint256 cap) external {
        wallet.setLimit(address(this), cap, 0);
    }

    function pay(IWallet wallet, bytes32 id, bytes32 inside, address to, uint256 amount) external {
        idInside = inside;
        wallet.spend(id, address(this), to, amount);
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        moved += amount;
        bytes32 id = idInside;
        idInside = 0;
        if (id != 0) IWallet(msg.sender).spend(id, address(this), to, amount);
        return true;
    }
}
`;

export const reentrantTokenAbi = [
  { type: "function", name: "moved", stateMutability: "view", inputs: [], outputs: [{ type: "uint256" }] },
  {
    type: "function",
    name: "setLimit",
    stateMutability: "nonpayable",
    inputs: [
      { name: "wallet", type: "address" },
      { name: "cap", type: "uint256" },
    ],
    outputs: [],
  },
  {
    type: "function",
    name: "pay",
    stateMutability: "nonpayable",
    inputs: [
      { name: "wallet", type: "address" },
      { name: "id", type: "bytes32" },
      { name: "inside", type: "bytes32" },
      { name: "to", type: "address" },
      { name: "amount", type: "uint256" },
    ],
    outputs: [],
  },
] as const;

/** The bytecode of each hostile token by its name. */
export const hostileTokens = (): ReadonlyMap<string, Hex> =>
  new Map(
    compile({ "test/HostileTokens.sol": SOURCE }).map(({ contractName, bytecode }) => [
      contractName,
      bytecode,
    ]),
  );

export async function deployHostile(
  chain: Chain,
  from: Address,
  bytecode: Hex | undefined,
): Promise<Address> {
  if (bytecode === undefined) throw new Error("the hostile token compiles");
  return deployedAt(
    chain,
    await chain.client.deployContract({ abi: [], bytecode, account: from, chain: null }),
  );
}
