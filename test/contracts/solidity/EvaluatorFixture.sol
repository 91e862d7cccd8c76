// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {VerdictLib} from "../../../contracts/VerdictLib.sol";
import {Jobs} from "../../../contracts/dev/Jobs.sol";
import {IArbiterEvaluator} from "../../../contracts/interfaces/IArbiterEvaluator.sol";
import {IERC20} from "../../../contracts/interfaces/IERC20.sol";
import {VerdictFixture} from "./VerdictFixture.sol";

interface IJobText {
    function toString(bytes32 value) external pure returns (string memory);
    function approve(address spender, uint256 value) external returns (bool);
}

/// @notice An evaluator, an ERC-8183 job contract and real USDC. Addresses and hashes are computed from the published
/// formulas, never read from the contract.
abstract contract EvaluatorFixture is VerdictFixture {
    address internal constant CLIENT = 0x000000000000000000000000000000000000c11e;
    address internal constant PROVIDER = 0x00000000000000000000000000000000C0ffee02;
    address internal constant FEES = 0x000000000000000000000000000000000000Fee5;
    uint256 internal constant USD = 1_000_000;
    bytes32 internal constant DELIVERABLE = keccak256("what was delivered");

    IArbiterEvaluator internal maker;
    Jobs internal jobs;
    IArbiterEvaluator.Terms internal terms;
    uint256 internal expiredAt;

    function setUp() public virtual override {
        super.setUp();
        maker = makerFor(arbiter, FEES);
        jobs = new Jobs(IERC20(address(USDC)));
        terms = IArbiterEvaluator.Terms(CONDITIONS, uint64(block.timestamp) + 1 days);
        expiredAt = block.timestamp + 2 days;
        jobOf(address(1), address(0));
    }

    /// @dev Deploys the production bytecode. Bubbles up the constructor's revert.
    function makerFor(address judge, address fees) internal returns (IArbiterEvaluator) {
        return IArbiterEvaluator(create("ArbiterEvaluator", abi.encode(judge, fees)));
    }

    /// @dev An open job of 1 USDC with its budget.
    function jobOf(address evaluator, address hook) internal returns (uint256 job) {
        vm.prank(CLIENT);
        job = jobs.createJob(PROVIDER, evaluator, expiredAt, "a haiku", hook);
        vm.prank(CLIENT);
        jobs.setBudget(job, USD, "");
    }

    function funded(address hook) internal returns (uint256 job) {
        job = jobOf(maker.evaluatorOf(terms), hook);
        fund(CLIENT, USD);
        vm.prank(CLIENT);
        IJobText(address(USDC)).approve(address(jobs), USD);
        vm.prank(CLIENT);
        jobs.fund(job, USD, "");
    }

    function submitted() internal returns (uint256 job) {
        job = funded(address(0));
        vm.prank(PROVIDER);
        jobs.submit(job, DELIVERABLE, "");
    }

    function dealOf(uint256 job) internal view returns (bytes32) {
        bytes32 id = keccak256(abi.encode(CHAIN, maker.evaluatorOf(terms), jobs, job));
        return keccak256(bytes(IJobText(address(vm)).toString(id)));
    }

    function verdictOn(VerdictLib.Outcome outcome, uint256 job) internal view returns (VerdictLib.Verdict memory) {
        return verdictOf(outcome, dealOf(job));
    }

    function evaluate(uint256 job, VerdictLib.Verdict memory verdict) internal {
        maker.evaluate(terms, address(jobs), job, verdict, attested(verdict));
    }

    /// @dev Expects a verdict to be refused for this reason.
    function refused(uint256 job, VerdictLib.Verdict memory verdict, bytes memory reason) internal {
        bytes memory signature = attested(verdict);
        vm.expectRevert(reason);
        maker.evaluate(terms, address(jobs), job, verdict, signature);
    }

    function assertStatus(uint256 job, Jobs.Status wanted) internal view {
        vm.assertEq(uint256(jobs.statusOf(job)), uint256(wanted), "status");
    }

    function assertBalances(uint256 client, uint256 provider, uint256 held) internal view {
        vm.assertEq(USDC.balanceOf(CLIENT), client, "the client's");
        vm.assertEq(USDC.balanceOf(PROVIDER), provider, "the provider's");
        vm.assertEq(USDC.balanceOf(address(jobs)), held, "the job contract's");
    }

    function wrongStatus(uint256 job, Jobs.Status got) internal pure returns (bytes memory) {
        return abi.encodeWithSelector(Jobs.WrongStatus.selector, job, got);
    }
}
