// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC20} from "../../../contracts/interfaces/IERC20.sol";
import {VerdictEscrow} from "../../../contracts/examples/VerdictEscrow.sol";
import {IApprove, VerdictEscrowFixture} from "./VerdictEscrowFixture.sol";

/// @notice Opening a deal in the example escrow: its terms, USDC transfer and reference.
contract VerdictEscrowOpenTest is VerdictEscrowFixture {
    bytes32 private deal;
    uint64 private deadline;

    function setUp() public override {
        super.setUp();
        deal = opened(USD, 1);
        deadline = uint64(block.timestamp) + TERM;
    }

    function test_zeroAddressesAreRefused() public {
        vm.expectRevert(abi.encodeWithSelector(VerdictEscrow.ZeroAddress.selector));
        new VerdictEscrow(IERC20(address(0)), arbiter);
        vm.expectRevert(abi.encodeWithSelector(VerdictEscrow.ZeroAddress.selector));
        new VerdictEscrow(IERC20(address(USDC)), address(0));
    }

    function testFuzz_aDealIsHeldAsItWasAgreed(uint256 amount, uint256 salt, uint64 term) public {
        amount = between(amount, 1, type(uint128).max);
        uint64 until = uint64(block.timestamp + between(term, 1, 365 days));
        vm.assume(salt != 1);
        fund(PAYER, amount);
        vm.startPrank(PAYER);
        IApprove(address(USDC)).approve(address(escrow), amount);
        string memory text = dealRef(PAYER, salt, CHAIN, address(escrow));
        bytes32 hash = keccak256(bytes(text));
        expectEvent();
        emit VerdictEscrow.Opened(hash, PAYER, PAYEE, amount, CONDITIONS, until, text);
        vm.assertEq(escrow.open(PAYEE, amount, CONDITIONS, until, salt), hash, "the hash of its reference");
        vm.stopPrank();
        (address payer, uint64 due, address payee, uint256 held, bytes32 conditions, uint64 refundableFrom,) =
            escrow.deals(hash);
        vm.assertTrue(payer == PAYER && payee == PAYEE && due == until && held == amount, "terms");
        vm.assertTrue(conditions == CONDITIONS && refundableFrom == until + 30 days, "conditions and way back");
        assertStatus(hash, VerdictEscrow.Status.Open);
        assertBalances(0, 0, USD + amount);
    }

    function test_impossibleDealsAreRefused() public {
        uint64 time = uint64(block.timestamp);
        address[2] memory payees = [address(0), address(escrow)];
        for (uint256 i = 0; i < 2; i++) {
            vm.expectRevert(abi.encodeWithSelector(VerdictEscrow.WrongPayee.selector, payees[i]));
            escrow.open(payees[i], USD, CONDITIONS, time + 1, 1);
        }
        vm.expectRevert(abi.encodeWithSelector(VerdictEscrow.ZeroAmount.selector));
        escrow.open(PAYEE, 0, CONDITIONS, time + 1, 1);
        uint64[3] memory deadlines = [time, time + 365 days + 1, type(uint64).max];
        for (uint256 i = 0; i < 3; i++) {
            vm.expectRevert(
                abi.encodeWithSelector(VerdictEscrow.WrongDeadline.selector, deadlines[i], time + 1, time + 365 days)
            );
            escrow.open(PAYEE, USD, CONDITIONS, deadlines[i], 1);
        }
    }

    function test_theFirstAndTheLastDeadlineWillDo() public {
        uint64[2] memory deadlines = [uint64(block.timestamp) + 1, uint64(block.timestamp) + 365 days];
        fund(PAYER, 2);
        vm.startPrank(PAYER);
        IApprove(address(USDC)).approve(address(escrow), 2);
        for (uint256 i = 0; i < 2; i++) {
            assertStatus(escrow.open(PAYEE, 1, CONDITIONS, deadlines[i], i + 2), VerdictEscrow.Status.Open);
        }
        vm.stopPrank();
    }

    function test_noDealWithoutItsUsdc() public {
        vm.prank(PAYER);
        vm.expectRevert("ERC20: transfer amount exceeds allowance");
        escrow.open(PAYEE, 1, CONDITIONS, deadline, 2);
        vm.mockCall(address(USDC), abi.encodePacked(IERC20.transferFrom.selector), abi.encode(false));
        vm.prank(PAYER);
        vm.expectRevert(abi.encodeWithSelector(VerdictEscrow.TransferRefused.selector, PAYER, 1));
        escrow.open(PAYEE, 1, CONDITIONS, deadline, 2);
    }

    /// @dev A settled deal keeps its reference; another payer with the same salt gets a different one.
    function test_oneReferenceIsOneDeal() public {
        vm.startPrank(PAYER);
        for (uint256 i = 0; i < 2; i++) {
            vm.expectRevert(abi.encodeWithSelector(VerdictEscrow.DealExists.selector, deal));
            escrow.open(STRANGER, 2 * USD, keccak256("others"), deadline, 1);
            if (i == 0) execute(RELEASE, deal);
        }
        vm.stopPrank();
        vm.assertEq(keccak256(bytes(escrow.dealRefOf(PAYER, 1))), deal, "its reference");
        vm.assertTrue(keccak256(bytes(escrow.dealRefOf(STRANGER, 1))) != deal, "another payer's");
    }

    function testFuzz_aReferenceNamesChainContractPayerAndSalt(address payer, uint256 salt, uint64 chain) public {
        vm.chainId(chain);
        string memory wanted = dealRef(payer, salt, chain, address(escrow));
        vm.assertEq(bytes(escrow.dealRefOf(payer, salt)).length, 66, "short enough for a claim");
        vm.assertEq(keccak256(bytes(escrow.dealRefOf(payer, salt))), keccak256(bytes(wanted)), "reference");
    }
}
