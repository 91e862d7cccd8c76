// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {VerdictLib} from "../../../contracts/VerdictLib.sol";
import {VerdictEscrow} from "../../../contracts/examples/VerdictEscrow.sol";
import {VerdictEscrowFixture} from "./VerdictEscrowFixture.sol";

/// @notice Random sequences of moves on a few deals, checked against a simple model: a move succeeds exactly when the
/// model allows it, and the escrow's balance always equals the sum of open amounts.
contract VerdictEscrowLivesTest is VerdictEscrowFixture {
    uint256 private constant DEALS = 3;
    uint256 private constant MOVES = 24;

    bytes32[DEALS] private deals;
    uint64[DEALS] private deadlines;
    uint256[DEALS] private wayBack;
    VerdictEscrow.Status[DEALS] private model;
    uint256 private paid;
    uint256 private refunded;

    function setUp() public override {
        super.setUp();
        for (uint256 i = 0; i < DEALS; i++) {
            deals[i] = opened(amountOf(i), i);
            deadlines[i] = uint64(block.timestamp) + TERM;
            wayBack[i] = deadlines[i] + 30 days;
            model[i] = VerdictEscrow.Status.Open;
            vm.warp(block.timestamp + 2 days);
        }
    }

    function amountOf(uint256 i) private pure returns (uint256) {
        return USD * 10 ** i;
    }

    /// forge-config: default.fuzz.runs = 64
    function testFuzz_everyLifeMatchesTheModelAndTheBooksAreExact(uint256 seed) public {
        for (uint256 i = 0; i < MOVES; i++) {
            seed = uint256(keccak256(abi.encode(seed)));
            move(seed);
            check();
        }
    }

    function move(uint256 seed) private {
        uint256 i = seed % DEALS;
        uint256 kind = (seed >> 8) % 5;
        if (kind == 4) vm.warp(block.timestamp + (seed >> 16) % 6 days);
        else if (kind == 3) takeBack(i);
        else carry(i, VerdictLib.Outcome(kind), (seed >> 16) % 2 days);
    }

    function isUnsettled(uint256 i) private view returns (bool) {
        return model[i] == VerdictEscrow.Status.Open || model[i] == VerdictEscrow.Status.Escalated;
    }

    function takeBack(uint256 i) private {
        vm.prank(PAYER);
        (bool ok,) = address(escrow).call(abi.encodeCall(VerdictEscrow.takeBack, (deals[i])));
        vm.assertTrue(ok == (isUnsettled(i) && block.timestamp >= wayBack[i]), "taken back if the model allows it");
        if (ok) settle(i, VerdictEscrow.Status.Refunded);
    }

    function carry(uint256 i, VerdictLib.Outcome outcome, uint256 age) private {
        VerdictLib.Verdict memory verdict = verdictOf(outcome, deals[i]);
        verdict.issuedAt -= uint64(age);
        (bool ok,) = address(escrow).call(abi.encodeCall(VerdictEscrow.execute, (verdict, attested(verdict))));
        bool counts = age <= 1 days && (outcome == RELEASE || verdict.issuedAt >= deadlines[i]);
        if (outcome == ESCALATE) counts = counts && model[i] == VerdictEscrow.Status.Open;
        vm.assertTrue(ok == (isUnsettled(i) && counts), "executed if the model allows it");
        if (!ok) return;
        if (outcome == RELEASE) settle(i, VerdictEscrow.Status.Released);
        else if (outcome == REFUND) settle(i, VerdictEscrow.Status.Refunded);
        else escalate(i);
    }

    function settle(uint256 i, VerdictEscrow.Status status) private {
        model[i] = status;
        if (status == VerdictEscrow.Status.Released) paid += amountOf(i);
        else refunded += amountOf(i);
    }

    function escalate(uint256 i) private {
        model[i] = VerdictEscrow.Status.Escalated;
        if (block.timestamp + 3 days < wayBack[i]) wayBack[i] = block.timestamp + 3 days;
    }

    function check() private view {
        uint256 held = 0;
        for (uint256 i = 0; i < DEALS; i++) {
            assertStatus(deals[i], model[i]);
            vm.assertEq(refundableFromOf(deals[i]), wayBack[i], "refundableFrom");
            if (isUnsettled(i)) held += amountOf(i);
        }
        assertBalances(refunded, paid, held);
    }
}
