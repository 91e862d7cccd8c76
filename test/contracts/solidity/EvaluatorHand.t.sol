// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {EvaluatorHand} from "../../../contracts/EvaluatorHand.sol";
import {IArbiterEvaluator} from "../../../contracts/interfaces/IArbiterEvaluator.sol";
import {IERC20} from "../../../contracts/interfaces/IERC20.sol";
import {EvaluatorFixture, IJobText} from "./EvaluatorFixture.sol";

/// @notice An evaluator's address: what it commits to, whom it obeys, and where its payments go.
contract EvaluatorHandTest is EvaluatorFixture {
    function testFuzz_theAddressIsTheCommitment(bytes32 conditions, uint64 rejectFrom, uint256 otherTime) public {
        terms = IArbiterEvaluator.Terms(conditions, rejectFrom);
        address evaluator = maker.evaluatorOf(terms);
        vm.assertEq(evaluator.code.length, 0, "no code before its first act");
        uint64 other = uint64(otherTime);
        if (other != rejectFrom) {
            vm.assertTrue(maker.evaluatorOf(IArbiterEvaluator.Terms(conditions, other)) != evaluator, "time");
        }
        vm.assertTrue(
            maker.evaluatorOf(IArbiterEvaluator.Terms(~conditions, rejectFrom)) != evaluator, "conditions"
        );
        IArbiterEvaluator another = makerFor(arbiter, FEES);
        vm.assertTrue(another.evaluatorOf(terms) != evaluator, "maker");
        maker.sweep(terms, IERC20(address(USDC)));
        vm.assertEq(evaluator.code.length, 45, "a minimal proxy");
        uint256 gas = gasleft();
        maker.sweep(terms, IERC20(address(USDC)));
        // Creating it again would fail and use nearly all remaining gas.
        vm.assertTrue(gas - gasleft() < 200_000, "made once");
    }

    function testFuzz_aDealNamesChainEvaluatorContractAndJob(uint64 chain, address evaluator, address host, uint256 job)
        public
    {
        vm.chainId(between(chain, 1, type(uint64).max));
        string memory wanted = IJobText(address(vm)).toString(keccak256(abi.encode(block.chainid, evaluator, host, job)));
        vm.assertEq(
            keccak256(bytes(maker.dealRefOf(evaluator, host, job))), keccak256(bytes(wanted)), "the published formula"
        );
    }

    function testFuzz_whatAnEvaluatorWasPaidGoesToTheFeeRecipient(address sender, uint256 amount) public {
        amount = between(amount, 0, 1000 * USD);
        address evaluator = maker.evaluatorOf(terms);
        if (amount > 0) fund(evaluator, amount);
        vm.prank(sender);
        maker.sweep(terms, IERC20(address(USDC)));
        vm.assertEq(USDC.balanceOf(FEES), amount, "all of it");
        vm.assertEq(USDC.balanceOf(evaluator), 0, "nothing left");
    }

    /// @dev A clone obeys only its maker, and so does its implementation.
    function testFuzz_aHandObeysItsMakerAlone(address sender) public {
        vm.assume(sender != address(maker));
        maker.sweep(terms, IERC20(address(USDC)));
        address hand = maker.evaluatorOf(terms);
        fund(hand, USD);
        bytes memory data = abi.encodeCall(IERC20.transfer, (STRANGER, USD));
        vm.expectRevert(abi.encodeWithSelector(EvaluatorHand.NotMaker.selector, sender, address(maker)));
        vm.prank(sender);
        EvaluatorHand(hand).act(address(USDC), data);
        vm.assertEq(USDC.balanceOf(hand), USD, "it keeps what it has");
    }

    function testFuzz_theRolesAreFixed(address judge, address fees) public {
        vm.assume(judge != address(0) && fees != address(0));
        IArbiterEvaluator instance = makerFor(judge, fees);
        vm.assertEq(instance.ARBITER(), judge, "ARBITER");
        vm.assertEq(instance.FEE_RECIPIENT(), fees, "FEE_RECIPIENT");
    }

    function deployFor(address judge, address fees) external {
        makerFor(judge, fees);
    }

    function test_zeroAddressesAreRefused() public {
        vm.expectRevert(abi.encodeWithSelector(IArbiterEvaluator.ZeroAddress.selector));
        this.deployFor(address(0), FEES);
        vm.expectRevert(abi.encodeWithSelector(IArbiterEvaluator.ZeroAddress.selector));
        this.deployFor(arbiter, address(0));
    }
}
