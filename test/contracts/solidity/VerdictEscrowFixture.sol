// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {VerdictLib} from "../../../contracts/VerdictLib.sol";
import {IERC20} from "../../../contracts/interfaces/IERC20.sol";
import {VerdictEscrow} from "../../../contracts/examples/VerdictEscrow.sol";
import {VerdictFixture} from "./VerdictFixture.sol";

interface IApprove {
    function approve(address spender, uint256 value) external returns (bool);
}

/// @dev A cheatcode used only by these tests.
interface IText {
    function toString(bytes32 value) external pure returns (string memory);
}

/// @notice The example escrow with real USDC and one payer's deals.
abstract contract VerdictEscrowFixture is VerdictFixture {
    address internal constant PAYER = 0x0000000000000000000000000000000000009a7E;
    address internal constant PAYEE = 0x00000000000000000000000000000000C0ffee02;
    uint256 internal constant USD = 1_000_000;
    uint64 internal constant TERM = 7 days;

    VerdictEscrow internal escrow;

    function setUp() public virtual override {
        super.setUp();
        escrow = new VerdictEscrow(IERC20(address(USDC)), arbiter);
    }

    /// @dev Approves and opens a deal whose deadline is `TERM` from now.
    function opened(uint256 amount, uint256 salt) internal returns (bytes32) {
        fund(PAYER, amount);
        vm.prank(PAYER);
        IApprove(address(USDC)).approve(address(escrow), amount);
        vm.prank(PAYER);
        return escrow.open(PAYEE, amount, CONDITIONS, uint64(block.timestamp) + TERM, salt);
    }

    /// @dev Computed from the published formula.
    function dealRef(address payer, uint256 salt, uint256 chain, address instance)
        internal
        pure
        returns (string memory)
    {
        return IText(address(vm)).toString(keccak256(abi.encode(chain, instance, payer, salt)));
    }

    function execute(VerdictLib.Verdict memory verdict) internal {
        escrow.execute(verdict, attested(verdict));
    }

    function execute(VerdictLib.Outcome outcome, bytes32 deal) internal {
        execute(verdictOf(outcome, deal));
    }

    function refundableFromOf(bytes32 deal) internal view returns (uint64 refundableFrom) {
        (,,,,, refundableFrom,) = escrow.deals(deal);
    }

    function statusOf(bytes32 deal) internal view returns (VerdictEscrow.Status status) {
        (,,,,,, status) = escrow.deals(deal);
    }

    function assertStatus(bytes32 deal, VerdictEscrow.Status wanted) internal view {
        vm.assertEq(uint256(statusOf(deal)), uint256(wanted), "status");
    }

    function assertBalances(uint256 payer, uint256 payee, uint256 held) internal view {
        vm.assertEq(USDC.balanceOf(PAYER), payer, "the payer's");
        vm.assertEq(USDC.balanceOf(PAYEE), payee, "the payee's");
        vm.assertEq(USDC.balanceOf(address(escrow)), held, "the escrow's");
    }

    function expectEvent() internal {
        vm.expectEmit(true, true, true, true, address(escrow));
    }

    function expectNotOpen(bytes32 deal, VerdictEscrow.Status got) internal {
        vm.expectRevert(abi.encodeWithSelector(VerdictEscrow.NotOpen.selector, deal, got));
    }
}
