// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Create2} from "@openzeppelin/contracts/utils/Create2.sol";
import {AgentWallet} from "./AgentWallet.sol";

/// @title Deploys agents' wallets at addresses that are known beforehand
/// @notice UNAUDITED. Keeps nothing and holds no rights. An address follows from owner, spender and salt together, so
/// whoever deploys first deploys the very wallet that was meant, and a wallet for another owner lies elsewhere. Tokens may
/// be sent to an address before its wallet is there.
contract AgentWalletFactory {
    event WalletDeployed(address indexed wallet, address indexed owner, address indexed spender, bytes32 salt);

    /// @notice Deploys a wallet, or answers the one that is there without any effect. Anyone may call.
    /// @param spender Its first spender; the address keeps following from this one when the owner sets another.
    function deploy(address owner, address spender, bytes32 salt) external returns (AgentWallet wallet) {
        wallet = AgentWallet(addressOf(owner, spender, salt));
        if (address(wallet).code.length > 0) return wallet;
        wallet = new AgentWallet{salt: salt}(owner, spender);
        emit WalletDeployed(address(wallet), owner, spender, salt);
    }

    /// @notice Where the wallet is, or will be.
    function addressOf(address owner, address spender, bytes32 salt) public view returns (address) {
        bytes memory initCode = abi.encodePacked(type(AgentWallet).creationCode, abi.encode(owner, spender));
        return Create2.computeAddress(salt, keccak256(initCode));
    }
}
