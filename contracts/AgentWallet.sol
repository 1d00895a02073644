// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Ownable, Ownable2Step} from "@openzeppelin/contracts/access/Ownable2Step.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";

/// @title The wallet of one agent
/// @notice UNAUDITED. Holds ERC-20 tokens of an organization, which a service may spend for one of its agents.
///
/// Two keys, and nobody else, can move money:
/// - the `owner`, a key of the organization: withdraws without any limit, sets the spender and the ceilings;
/// - the `spender`, a key of the service: spends within its own limit and within the owner's ceiling, each payment id once.
///
/// The spender sets its own limit, to mirror the agent's policy: it guards against faults of the service, not against its
/// key in other hands. The owner's ceiling guards against that, token by token: a token without a ceiling, also one that
/// arrives later, is as safe as the spender's key. A token that answers at two addresses needs a ceiling at both.
///
/// There is no upgrade, no proxy, no approval, no signature and no call of the spender's choice: of a token it only ever
/// calls `transfer`. Native coin is not accepted, and what is sent to the address before the wallet is there stays there.
contract AgentWallet is Ownable2Step {
    using SafeERC20 for IERC20;

    /// @dev What was spent in the running window is `totalSpent - spentBefore`: both limits share one count of what was
    /// spent, so they cannot disagree on it, only on where their window began.
    struct Limit {
        /// 0: the wallet's whole life.
        uint64 periodSeconds;
        /// The timestamp at which the window that was last begun is over; 0 before the first.
        uint64 windowEnd;
        /// Tells a ceiling of 0 from none. The spender's limit needs no such thing: unset, nothing can be spent.
        bool isSet;
        uint256 cap;
        /// Of this token before that window began.
        uint256 spentBefore;
    }

    /// @notice The key that may spend; zero when detached or removed.
    address public spender;
    /// @notice Whether the payment with this id was made. Never false again once it is true.
    mapping(bytes32 id => bool) public isSpent;
    /// @notice All that was ever spent of a token, by any spender. Withdrawals do not count.
    mapping(address token => uint256) public totalSpent;

    mapping(address token => Limit) private _limits;
    mapping(address token => Limit) private _ceilings;

    event Spent(bytes32 indexed id, address indexed token, address indexed to, uint256 amount);
    event Withdrawn(address indexed token, address indexed to, uint256 amount);
    event LimitSet(address indexed token, uint256 cap, uint64 periodSeconds);
    event CeilingSet(address indexed token, uint256 cap, uint64 periodSeconds);
    event CeilingCleared(address indexed token);
    event SpenderChanged(address indexed previousSpender, address indexed newSpender);

    error NotSpender(address caller);
    error AlreadySpent(bytes32 id);
    error LimitExceeded(address token, uint256 available, uint256 amount);
    error CeilingExceeded(address token, uint256 available, uint256 amount);
    error InvalidRecipient(address to);
    error InvalidAmount();
    error OwnershipNotRenounceable();

    modifier onlySpender() {
        require(msg.sender == spender, NotSpender(msg.sender));
        _;
    }

    /// @param owner_ The organization's key; not zero.
    /// @param spender_ The service's key; zero for none yet.
    constructor(address owner_, address spender_) Ownable(owner_) {
        _changeSpender(spender_);
    }

    /// @notice Pays. A payment that reverts leaves no trace: its id is unused and nothing is charged.
    /// @dev Everything is recorded before the token is called, so a token or recipient that calls back finds the payment
    /// made and charged; nothing more is needed against re-entrancy. A token that takes a fee is charged by what left.
    /// @param id Of the payment; good once, whatever the other arguments are.
    function spend(bytes32 id, IERC20 token, address to, uint256 amount) external onlySpender {
        require(!isSpent[id], AlreadySpent(id));
        require(amount > 0, InvalidAmount());
        _checkRecipient(token, to);

        isSpent[id] = true;
        _charge(address(token), amount);
        emit Spent(id, address(token), to, amount);
        token.safeTransfer(to, amount);
    }

    /// @notice Sets the spender's own limit for a token.
    /// @dev Windows are fixed: one ends whenever `block.timestamp` is a multiple of `periodSeconds`, so twice the cap may
    /// leave around such a moment. About changes, of this limit and of the ceiling alike:
    /// - A new cap holds at once, and what was spent in the running window still counts against it.
    /// - A new period never forgets what was counted in the running window: it is carried into the new period's running
    ///   window and ends with it. That may count too much for one window, never too little of what had been counted.
    /// - The whole life (0) counts everything ever spent of the token, whenever it is set. Coming from it, the window that
    ///   had been running goes on if it is not over; otherwise counting begins with the change.
    /// - Whoever may set a limit can wait out a short period, and thereby empty the count, just as they can raise the cap.
    ///   So a limit binds everyone but its setter, and only the ceiling binds the spender.
    /// @param cap In the token's smallest unit. 0: nothing.
    /// @param periodSeconds 0: the wallet's whole life.
    function setLimit(address token, uint256 cap, uint64 periodSeconds) external onlySpender {
        _set(_limits[token], token, cap, periodSeconds);
        emit LimitSet(token, cap, periodSeconds);
    }

    /// @notice Gives up the wallet: the spender is none until the owner sets another. Money, ids and counts stay.
    function detach() external onlySpender {
        _changeSpender(address(0));
    }

    /// @notice Sets another spender, or none (zero). Limits and what was spent of them pass over to it.
    function setSpender(address newSpender) external onlyOwner {
        _changeSpender(newSpender);
    }

    /// @notice Sets what the spender cannot exceed, however it sets its own limit. See {setLimit} on windows and changes.
    function setCeiling(address token, uint256 cap, uint64 periodSeconds) external onlyOwner {
        _set(_ceilings[token], token, cap, periodSeconds);
        emit CeilingSet(token, cap, periodSeconds);
    }

    /// @notice Removes a ceiling and forgets its running window: one over a period that is set later counts from then on.
    function clearCeiling(address token) external onlyOwner {
        delete _ceilings[token];
        emit CeilingCleared(token);
    }

    /// @notice Takes tokens out, any amount at any time.
    function withdraw(IERC20 token, address to, uint256 amount) external onlyOwner {
        _checkRecipient(token, to);
        emit Withdrawn(address(token), to, amount);
        token.safeTransfer(to, amount);
    }

    /// @notice Reverts: without an owner the money of a detached wallet would be lost.
    function renounceOwnership() public view override onlyOwner {
        revert OwnershipNotRenounceable();
    }

    /// @notice The spender's limit of a token as it stands in this block.
    function limitOf(
        address token
    ) external view returns (uint256 cap, uint64 periodSeconds, uint256 spentInPeriod, uint256 available) {
        Limit storage limit = _limits[token];
        (cap, periodSeconds) = (limit.cap, limit.periodSeconds);
        (spentInPeriod, available) = _usage(limit, cap, totalSpent[token]);
    }

    /// @notice The owner's ceiling of a token as it stands in this block; none reads as the highest cap over the whole life.
    function ceilingOf(
        address token
    ) external view returns (uint256 cap, uint64 periodSeconds, uint256 spentInPeriod, uint256 available) {
        Limit storage ceiling = _ceilings[token];
        (cap, periodSeconds) = (ceiling.isSet ? ceiling.cap : type(uint256).max, ceiling.periodSeconds);
        (spentInPeriod, available) = _usage(ceiling, cap, totalSpent[token]);
    }

    function _changeSpender(address newSpender) private {
        emit SpenderChanged(spender, newSpender);
        spender = newSpender;
    }

    /// @dev Where money would be lost, or would not move at all.
    function _checkRecipient(IERC20 token, address to) private view {
        bool isValid = to != address(0) && to != address(this) && to != address(token);
        require(isValid, InvalidRecipient(to));
    }

    function _charge(address token, uint256 amount) private {
        uint256 total = totalSpent[token];

        Limit storage limit = _limits[token];
        _roll(limit, total);
        (, uint256 available) = _usage(limit, limit.cap, total);
        require(amount <= available, LimitExceeded(token, available, amount));

        Limit storage ceiling = _ceilings[token];
        if (ceiling.isSet) {
            _roll(ceiling, total);
            (, available) = _usage(ceiling, ceiling.cap, total);
            require(amount <= available, CeilingExceeded(token, available, amount));
        }

        totalSpent[token] = total + amount;
    }

    function _set(Limit storage limit, address token, uint256 cap, uint64 periodSeconds) private {
        uint256 total = totalSpent[token];
        _roll(limit, total);
        if (periodSeconds != 0) {
            if (_isOver(limit)) limit.spentBefore = total;
            limit.windowEnd = _endOfWindow(periodSeconds);
        }
        limit.periodSeconds = periodSeconds;
        limit.isSet = true;
        limit.cap = cap;
    }

    /// @dev Begins the running window if the one that was last begun is over.
    function _roll(Limit storage limit, uint256 total) private {
        if (limit.periodSeconds == 0 || !_isOver(limit)) return;
        limit.spentBefore = total;
        limit.windowEnd = _endOfWindow(limit.periodSeconds);
    }

    function _usage(Limit storage limit, uint256 cap, uint256 total) private view returns (uint256 spent, uint256 available) {
        if (limit.periodSeconds == 0) spent = total;
        else if (!_isOver(limit)) spent = total - limit.spentBefore;
        // A cap may have been lowered below what was spent already.
        available = cap > spent ? cap - spent : 0;
    }

    function _isOver(Limit storage limit) private view returns (bool) {
        return block.timestamp >= limit.windowEnd;
    }

    /// @dev Fits: it is at most the period itself, or twice the present time.
    function _endOfWindow(uint64 periodSeconds) private view returns (uint64) {
        return (uint64(block.timestamp) / periodSeconds + 1) * periodSeconds;
    }
}
