// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC3009} from "@openzeppelin/contracts/token/ERC20/extensions/draft-ERC3009.sol";
import {ERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Permit.sol";
import {SignatureChecker} from "@openzeppelin/contracts/utils/cryptography/SignatureChecker.sol";

/// @title Test money, worth nothing
/// @notice UNAUDITED. Stands in for USDC where no real money is meant: 6 decimals, EIP-3009 authorizations (EIP-712 domain
/// "Sandbox USD", version "1") by keys and by contracts, EIP-2612 permits. Its minter makes as much of it as it likes.
contract SandboxUSD is ERC3009, ERC20Permit {
    /// @notice The only one who may mint.
    address public immutable minter;

    error NotMinter(address caller);

    constructor(address minter_) ERC20("Sandbox USD", "sUSD") ERC20Permit("Sandbox USD") {
        minter = minter_;
    }

    function mint(address to, uint256 amount) external {
        require(msg.sender == minter, NotMinter(msg.sender));
        _mint(to, amount);
    }

    /// @notice Executes a transfer that its payer has signed: a key by 65 bytes, a contract by EIP-1271. As USDC has it.
    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes calldata signature
    ) external {
        bytes32 signed = _hashTypedDataV4(
            keccak256(abi.encode(TRANSFER_WITH_AUTHORIZATION_TYPEHASH, from, to, value, validAfter, validBefore, nonce))
        );
        require(SignatureChecker.isValidSignatureNow(from, signed, signature), ERC3009InvalidSignature());
        _transferWithAuthorization(from, to, value, validAfter, validBefore, nonce);
    }

    /// @notice The version of the EIP-712 domain. As USDC has it.
    function version() external pure returns (string memory) {
        return "1";
    }

    function decimals() public pure override returns (uint8) {
        return 6;
    }
}
