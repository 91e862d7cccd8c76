// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IEscrow} from "../../../contracts/interfaces/IEscrow.sol";
import {EscrowFixture} from "./EscrowFixture.sol";

/// @notice Burns gas before forwarding each call to Circle's code, simulating a more expensive USDC.
contract DearUsdc {
    address private immutable NEXT;
    uint256 private immutable COST;

    constructor(address next, uint256 cost) {
        NEXT = next;
        COST = cost;
    }

    fallback() external {
        if (msg.sig == 0xa9059cbb) {
            uint256 end = gasleft() > COST ? gasleft() - COST : 0;
            while (gasleft() > end) {}
        }
        (bool ok, bytes memory answer) = NEXT.delegatecall(msg.data);
        assembly ("memory-safe") {
            if iszero(ok) { revert(add(answer, 0x20), mload(answer)) }
            return(add(answer, 0x20), mload(answer))
        }
    }
}

/// @notice The caller's gas limit must not determine whether an account is paid or has to withdraw.
contract EscrowGasTest is EscrowFixture {
    bytes32 private constant IMPLEMENTATION_SLOT = keccak256("org.zeppelinos.proxy.implementation");

    /// @dev Either the call has no effect or the account is paid.
    function decide(IEscrow.PaymentInfo memory info, bool isRelease, uint256 gas) private returns (bytes4 reason) {
        address account = isRelease ? MERCHANT : payer;
        uint256 before = USDC.balanceOf(account);
        bytes memory data = isRelease
            ? abi.encodeCall(IEscrow.release, (info, RECORD, ""))
            : abi.encodeCall(IEscrow.refund, (info, RECORD, ""));
        vm.prank(arbiter);
        (bool ok, bytes memory answer) = address(escrow).call{gas: gas}(data);
        assertOwed(account, 0);
        assertStatus(info, ok ? (isRelease ? IEscrow.Status.Released : IEscrow.Status.Refunded) : IEscrow.Status.Held);
        vm.assertTrue((USDC.balanceOf(account) > before) == ok, "paid when it succeeds, and only then");
        return bytes4(answer);
    }

    function testFuzz_noGasLimitForcesThePullPath(uint256 gas, bool isRelease) public {
        decide(held(USD), isRelease, between(gas, 5_000, 150_000));
    }

    function makeDear(uint256 cost) private {
        vm.store(address(USDC), IMPLEMENTATION_SLOT, bytes32(uint256(uint160(address(new DearUsdc(USDC_CODE, cost))))));
    }

    /// @dev Here a starved transfer leaves enough gas to record the debt: 1/64, plus 1/64 for each proxy.
    function testFuzz_noGasLimitForcesThePullPathOfADearToken(uint256 cost, uint256 gas, bool isRelease) public {
        cost = between(cost, 1_000_000, 6_000_000);
        IEscrow.PaymentInfo memory info = held(USD);
        makeDear(cost);
        decide(info, isRelease, between(gas, cost / 2, cost + cost / 4));
    }

    function test_aStarvedPayoutReverts() public {
        IEscrow.PaymentInfo memory info = held(USD);
        makeDear(6_000_000);
        vm.assertEq(bytes32(decide(info, true, 5_900_000)), bytes32(IEscrow.PayoutStarved.selector), "the reason");
        vm.assertEq(bytes32(decide(info, false, 5_900_000)), bytes32(IEscrow.PayoutStarved.selector), "the reason");
        decide(info, true, 7_000_000);
        assertStatus(info, IEscrow.Status.Released);
    }

    /// @dev The guard never mistakes a genuine rejection for starvation: a call that succeeds with more gas succeeds
    /// with this amount.
    function testFuzz_aRefusedPayoutIsOwedWithAnyGasThatIsEnough(uint256 gas) public {
        IEscrow.PaymentInfo memory info = held(USD);
        setBlacklisted(MERCHANT, true);
        vm.prank(arbiter);
        bytes memory data = abi.encodeCall(IEscrow.release, (info, RECORD, ""));
        (bool ok, bytes memory answer) = address(escrow).call{gas: between(gas, 5_000, 1_000_000)}(data);
        vm.assertTrue(ok || bytes4(answer) != IEscrow.PayoutStarved.selector, "no starvation");
        assertOwed(MERCHANT, ok ? USD - USD / 100 : 0);
    }
}
