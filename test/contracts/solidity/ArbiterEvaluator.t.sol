// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {VerdictLib} from "../../../contracts/VerdictLib.sol";
import {Jobs} from "../../../contracts/dev/Jobs.sol";
import {IArbiterEvaluator} from "../../../contracts/interfaces/IArbiterEvaluator.sol";
import {IERC20} from "../../../contracts/interfaces/IERC20.sol";
import {EvaluatorFixture} from "./EvaluatorFixture.sol";

/// @dev A hook that refuses the completion or reenters with the same verdict.
contract HostileHook {
    enum Plan {
        Refuse,
        ComeBack,
        Nothing
    }

    Plan private plan;
    address private maker;
    bytes private verdict;

    function comeBack(address maker_, bytes calldata verdict_) external {
        (plan, maker, verdict) = (Plan.ComeBack, maker_, verdict_);
    }

    function beforeAction(uint256, bytes4 selector, bytes calldata) external {
        if (selector != Jobs.complete.selector || plan == Plan.Nothing) return;
        if (plan == Plan.Refuse) revert("hook");
        plan = Plan.Nothing;
        (bool ok,) = maker.call(verdict);
        require(ok, "the second time");
    }

    function afterAction(uint256, bytes4, bytes calldata) external {}
}

/// @notice Effects of verdicts on ERC-8183 jobs, with every known trap.
contract ArbiterEvaluatorTest is EvaluatorFixture {
    function testFuzz_aReleaseCompletesForAnySender(address carrier, bytes32 conditions, uint64 rejectFrom) public {
        terms = IArbiterEvaluator.Terms(conditions, rejectFrom);
        uint256 job = submitted();
        VerdictLib.Verdict memory verdict = verdictOn(RELEASE, job);
        verdict.conditionsSha256 = conditions;
        bytes32 reason = digestFor(verdict, CHAIN);
        vm.expectEmit(true, true, true, true, address(maker));
        emit IArbiterEvaluator.Evaluated(
            address(jobs), job, maker.evaluatorOf(terms), true, reason, "0123456789abcdef"
        );
        vm.expectEmit(true, true, true, true, address(jobs));
        emit Jobs.JobCompleted(job, reason);
        vm.prank(carrier);
        evaluate(job, verdict);
        assertStatus(job, Jobs.Status.Completed);
        assertBalances(0, USD, 0);
    }

    function testFuzz_aRefundRejectsFromItsTimeOn(address carrier, uint64 later, bool isSubmitted) public {
        uint256 job = isSubmitted ? submitted() : funded(address(0));
        vm.warp(terms.rejectFrom + between(later, 0, 300 days));
        VerdictLib.Verdict memory verdict = verdictOn(REFUND, job);
        bytes32 reason = digestFor(verdict, CHAIN);
        vm.expectEmit(true, true, true, true, address(maker));
        emit IArbiterEvaluator.Evaluated(
            address(jobs), job, maker.evaluatorOf(terms), false, reason, "0123456789abcdef"
        );
        vm.expectEmit(true, true, true, true, address(jobs));
        emit Jobs.JobRejected(job, maker.evaluatorOf(terms), reason);
        vm.prank(carrier);
        evaluate(job, verdict);
        assertStatus(job, Jobs.Status.Rejected);
        assertBalances(USD, 0, 0);
    }

    /// @dev A refund issued before its time never counts, even if it is submitted later.
    function test_oneSecondBeforeItsTimeNoRefundCounts() public {
        uint256 job = submitted();
        vm.warp(terms.rejectFrom - 1);
        VerdictLib.Verdict memory early = verdictOn(REFUND, job);
        bytes4 kind = IArbiterEvaluator.IssuedTooEarly.selector;
        bytes memory reason = abi.encodeWithSelector(kind, terms.rejectFrom - 1, terms.rejectFrom);
        refused(job, early, reason);
        vm.warp(terms.rejectFrom + 60);
        refused(job, early, reason);
        early.issuedAt = terms.rejectFrom;
        evaluate(job, early);
        assertStatus(job, Jobs.Status.Rejected);
    }

    /// @dev The documented trap: a time of 0 allows a rejection before the delivery.
    function test_withATimeOfZeroAJobIsRejectedBeforeTheDelivery() public {
        terms.rejectFrom = 0;
        uint256 job = funded(address(0));
        evaluate(job, verdictOn(REFUND, job));
        assertStatus(job, Jobs.Status.Rejected);
        assertBalances(USD, 0, 0);
    }

    function test_anEscalationDecidesNothingAndTheJobExpires() public {
        uint256 job = submitted();
        vm.warp(terms.rejectFrom);
        refused(job, verdictOn(ESCALATE, job), abi.encodeWithSelector(IArbiterEvaluator.NothingDecided.selector));
        assertStatus(job, Jobs.Status.Submitted);
        vm.warp(expiredAt);
        jobs.claimRefund(job);
        assertStatus(job, Jobs.Status.Expired);
        assertBalances(USD, 0, 0);
    }

    function test_theFirstVerdictIsAcceptedOnce() public {
        uint256 first = submitted();
        uint256 second = submitted();
        VerdictLib.Verdict memory release = verdictOn(RELEASE, first);
        evaluate(first, release);
        refused(first, release, wrongStatus(first, Jobs.Status.Completed));
        vm.warp(terms.rejectFrom);
        evaluate(second, verdictOn(REFUND, second));
        refused(first, verdictOn(REFUND, first), wrongStatus(first, Jobs.Status.Completed));
        refused(second, verdictOn(RELEASE, second), wrongStatus(second, Jobs.Status.Rejected));
        refused(second, verdictOn(REFUND, second), wrongStatus(second, Jobs.Status.Rejected));
        assertBalances(USD, USD, 0);
    }

    /// @dev A verdict that the job contract refuses can be submitted again.
    function test_aReleaseBeforeTheSubmissionCanBeRetried() public {
        uint256 job = funded(address(0));
        VerdictLib.Verdict memory verdict = verdictOn(RELEASE, job);
        refused(job, verdict, wrongStatus(job, Jobs.Status.Funded));
        vm.prank(PROVIDER);
        jobs.submit(job, DELIVERABLE, "");
        evaluate(job, verdict);
        assertStatus(job, Jobs.Status.Completed);
    }

    function test_anOpenJobIsNotTheEvaluatorsToReject() public {
        terms.rejectFrom = 0;
        uint256 job = jobOf(maker.evaluatorOf(terms), address(0));
        bytes4 kind = Jobs.WrongCaller.selector;
        refused(job, verdictOn(REFUND, job), abi.encodeWithSelector(kind, maker.evaluatorOf(terms)));
        assertStatus(job, Jobs.Status.Open);
    }

    function testFuzz_aVerdictOnOtherConditionsIsRefused(bytes32 conditions) public {
        vm.assume(conditions != CONDITIONS);
        uint256 job = submitted();
        VerdictLib.Verdict memory verdict = verdictOn(RELEASE, job);
        verdict.conditionsSha256 = conditions;
        bytes4 kind = IArbiterEvaluator.WrongConditions.selector;
        refused(job, verdict, abi.encodeWithSelector(kind, conditions, CONDITIONS));
    }

    function testFuzz_aVerdictOnAnotherDealIsRefused(bytes32 deal) public {
        uint256 job = submitted();
        vm.assume(deal != dealOf(job));
        VerdictLib.Verdict memory verdict = verdictOf(RELEASE, deal);
        bytes4 kind = IArbiterEvaluator.WrongDeal.selector;
        refused(job, verdict, abi.encodeWithSelector(kind, deal, dealOf(job)));
    }

    /// @dev Another job, another job contract, or other terms are another deal.
    function test_aVerdictBindsJobContractAndTerms() public {
        uint256 job = submitted();
        VerdictLib.Verdict memory verdict = verdictOn(RELEASE, job);
        uint256 other = submitted();
        bytes4 kind = IArbiterEvaluator.WrongDeal.selector;
        refused(other, verdict, abi.encodeWithSelector(kind, verdict.dealRefHash, dealOf(other)));
        Jobs first = jobs;
        jobs = new Jobs(IERC20(address(USDC)));
        refused(job, verdict, abi.encodeWithSelector(kind, verdict.dealRefHash, dealOf(job)));
        jobs = first;
        terms.rejectFrom++;
        refused(job, verdict, abi.encodeWithSelector(kind, verdict.dealRefHash, dealOf(job)));
    }

    function test_aVerdictCountsForADay() public {
        uint256 job = submitted();
        VerdictLib.Verdict memory verdict = verdictOn(RELEASE, job);
        vm.warp(verdict.issuedAt + 1 days + 1);
        uint256 expiry = uint256(verdict.issuedAt) + 1 days;
        refused(job, verdict, abi.encodeWithSelector(VerdictLib.VerdictExpired.selector, block.timestamp, expiry));
        vm.warp(verdict.issuedAt + 1 days);
        evaluate(job, verdict);
        vm.assertEq(maker.MAX_AGE(), 1 days, "MAX_AGE");
    }

    /// @dev The checks run in order: conditions, deal, signature, outcome, time.
    function test_theChecksHaveAnOrder() public {
        uint256 job = submitted();
        VerdictLib.Verdict memory verdict = verdictOf(ESCALATE, 0);
        verdict.conditionsSha256 = 0;
        bytes memory unsigned = new bytes(65);
        expectAndTry(job, verdict, unsigned, IArbiterEvaluator.WrongConditions.selector);
        verdict.conditionsSha256 = CONDITIONS;
        expectAndTry(job, verdict, unsigned, IArbiterEvaluator.WrongDeal.selector);
        verdict.dealRefHash = dealOf(job);
        expectAndTry(job, verdict, unsigned, VerdictLib.NotArbiter.selector);
        expectAndTry(job, verdict, attested(verdict), IArbiterEvaluator.NothingDecided.selector);
        verdict.outcome = REFUND;
        expectAndTry(job, verdict, attested(verdict), IArbiterEvaluator.IssuedTooEarly.selector);
    }

    function expectAndTry(uint256 job, VerdictLib.Verdict memory verdict, bytes memory signature, bytes4 wanted)
        private
    {
        bytes memory data =
            abi.encodeCall(IArbiterEvaluator.evaluate, (terms, address(jobs), job, verdict, signature));
        (bool ok, bytes memory reason) = address(maker).call(data);
        vm.assertTrue(!ok && bytes4(reason) == wanted, "in order");
    }

    /// @dev Hooks belong to the job contract. One that refuses makes the job expire.
    function test_aHookThatRefusesLeavesTheJobToExpire() public {
        HostileHook hook = new HostileHook();
        uint256 job = funded(address(hook));
        vm.prank(PROVIDER);
        jobs.submit(job, DELIVERABLE, "");
        refused(job, verdictOn(RELEASE, job), abi.encodeWithSignature("Error(string)", "hook"));
        vm.warp(expiredAt);
        jobs.claimRefund(job);
        assertBalances(USD, 0, 0);
    }

    /// @dev When the first verdict continues, the job contract finds the job completed and reverts both.
    function test_aHookThatComesBackCompletesNothingTwice() public {
        HostileHook hook = new HostileHook();
        uint256 job = funded(address(hook));
        vm.prank(PROVIDER);
        jobs.submit(job, DELIVERABLE, "");
        VerdictLib.Verdict memory verdict = verdictOn(RELEASE, job);
        bytes memory signature = attested(verdict);
        bytes memory data = abi.encodeCall(IArbiterEvaluator.evaluate, (terms, address(jobs), job, verdict, signature));
        hook.comeBack(address(maker), data);
        vm.expectRevert(wrongStatus(job, Jobs.Status.Completed));
        maker.evaluate(terms, address(jobs), job, verdict, signature);
        assertStatus(job, Jobs.Status.Submitted);
        assertBalances(0, 0, USD);
    }
}
