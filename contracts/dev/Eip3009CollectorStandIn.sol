// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuthCaptureEscrow} from "../interfaces/IAuthCaptureEscrow.sol";
import {IEscrow} from "../interfaces/IEscrow.sol";
import {IUsdc} from "../interfaces/IUsdc.sol";

interface IAggregate {
    struct Call {
        address target;
        bytes callData;
    }

    struct Result {
        bool success;
        bytes returnData;
    }

    function tryAggregate(bool requireSuccess, Call[] calldata calls) external returns (Result[] memory results);
}

/// @title Eip3009CollectorStandIn
/// @notice Stands in for base/commerce-payments' collector of EIP-3009 authorizations on local chains and in tests, at
/// its canonical address. For development and tests only.
contract Eip3009CollectorStandIn {
    error OnlyAuthCaptureEscrow();

    /// @notice The type of a collector for payments, as opposed to refunds.
    uint8 public constant collectorType = 0;
    bytes32 private constant ERC6492_MAGIC = 0x6492649264926492649264926492649264926492649264926492649264926492;

    /// @notice The escrow for which it collects.
    address public immutable authCaptureEscrow;
    /// @notice Multicall3, which makes a wallet's preparation call so that this contract is never the caller.
    address public immutable multicall3;

    constructor(address escrow, address multicall) {
        authCaptureEscrow = escrow;
        multicall3 = multicall;
    }

    /// @notice Moves `amount` from the payer to the escrow's store, and any signed excess back.
    /// @param data The payer's signature, wrapped with a preparation call if the wallet has no code yet (ERC-6492).
    function collectTokens(IEscrow.PaymentInfo memory info, address store, uint256 amount, bytes memory data)
        external
    {
        if (msg.sender != authCaptureEscrow) revert OnlyAuthCaptureEscrow();
        address payer = info.payer;
        info.payer = address(0);
        bytes32 nonce = IAuthCaptureEscrow(authCaptureEscrow).getHash(info);
        if (_isWrapped(data)) data = _prepare(data);
        IUsdc token = IUsdc(info.token);
        token.receiveWithAuthorization(
            payer, address(this), info.maxAmount, 0, info.preApprovalExpiry, nonce, data
        );
        if (info.maxAmount > amount) token.transfer(payer, info.maxAmount - amount);
        token.transfer(store, amount);
    }

    function _isWrapped(bytes memory data) private pure returns (bool) {
        if (data.length < 32) return false;
        bytes32 last;
        assembly ("memory-safe") {
            last := mload(add(data, mload(data)))
        }
        return last == ERC6492_MAGIC;
    }

    /// @dev The preparation call may fail, because the wallet may already have its code.
    function _prepare(bytes memory data) private returns (bytes memory signature) {
        IAggregate.Call[] memory calls = new IAggregate.Call[](1);
        (calls[0].target, calls[0].callData, signature) = abi.decode(data, (address, bytes, bytes));
        IAggregate(multicall3).tryAggregate(false, calls);
    }
}
