// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IEscrow} from "../../../contracts/interfaces/IEscrow.sol";
import {ModelUsdc} from "./ModelUsdc.sol";
import {Promises} from "./Promises.sol";

/// @notice The promises for values near the boundaries. Purely random values would hardly ever hold a payment.
abstract contract LikelyPromises is Promises {
    address private constant STRANGER = 0x0000000000000000000000000000000000057a46;

    /// @dev The meaning of each choice from 0 to 7.
    struct Choices {
        uint8 payer;
        uint8 receiver;
        uint8 sender;
        uint8 other;
        uint8 verdict;
        uint8 time;
        uint8 answer;
        uint120 amount;
    }

    function test_theArbitersKeyIsKnown() public pure {
        vm.assertEq(vm.addr(ARBITER_KEY), ARBITER, "the arbiter");
    }

    /// @dev Correct terms with one field changed. Without a change they are held.
    function testFuzz_aHoldTakesWhatWasSigned(Choices memory choices, uint8 field, uint256 change) public {
        IEscrow.PaymentInfo memory info = terms(likely(choices, 1));
        uint256 amount = info.maxAmount;
        address collector = payee;
        field %= 16;
        if (field < 12) {
            uint256 width = [160, 160, 160, 160, 120, 48, 48, 48, 16, 16, 160, 256][field];
            assembly ("memory-safe") {
                let word := add(info, mul(field, 0x20))
                mstore(word, shr(sub(256, width), shl(sub(256, width), xor(mload(word), change))))
            }
        }
        if (field == 12) amount = change;
        if (field == 13) collector = address(uint160(change));
        if (field == 14) amount = info.maxAmount = uint120(change % (2 * MINIMUM));
        vm.assume(amount < type(uint256).max / 4);
        address other = someone(choices.other);
        vm.assume(signs(info.payer) && other != info.payer && other != custody);
        bytes32 id = idOf(info);
        check_aHoldTakesWhatWasSigned(info, amount, collector, someone(choices.sender), other);
        if (field == 15) requireHeld(id, NOW + 30 minutes);
    }

    function testFuzz_aReleaseIsTheArbiters(Choices memory choices, bytes32 record) public {
        Sale memory sale = likely(choices, 1);
        address other = someone(choices.other);
        vm.assume(other != sale.receiver && other != FEES && other != custody);
        check_aReleaseIsTheArbiters(sale, likely(choices, sale, true, record), answerOf(choices), other);
    }

    function testFuzz_aRefundIsThePayers(Choices memory choices, bytes32 record) public {
        Sale memory sale = likely(choices, 1);
        address other = someone(choices.other);
        vm.assume(other != sale.payer && other != custody);
        check_aRefundIsThePayers(sale, likely(choices, sale, false, record), answerOf(choices), other);
    }

    function testFuzz_fromMinute30AnybodyRefunds(Choices memory choices, uint48 later) public {
        uint48 time = NOW + 30 minutes + (later % 2 == 0 ? later % 60 : later / 2);
        check_fromMinute30AnybodyRefunds(likely(choices, 1), someone(choices.sender), time);
    }

    function testFuzz_aPaymentEndsOnce(Choices memory choices, bool released, uint8 again, bytes32 record) public {
        Sale memory sale = likely(choices, 1);
        again %= 3;
        check_aPaymentEndsOnce(sale, released, again, likely(choices, sale, again == 1, record));
    }

    function testFuzz_otherPaymentsStay(Choices memory choices, Choices memory others, bool isRelease) public {
        check_otherPaymentsStay(likely(choices, 1), likely(others, 2), isRelease);
    }

    function likely(Choices memory choices, uint256 salt) private pure returns (Sale memory) {
        // The choices include a buyer that also sells, and the fee recipient as a merchant.
        address payer = address(uint160(0xB0B0 + choices.payer % 3));
        address receiver = choices.receiver % 8 == 0 ? FEES : address(uint160(0xB0B0 + choices.receiver % 4));
        uint120 amount = choices.amount % 2 == 0 ? MINIMUM + choices.amount % 300 : MINIMUM + choices.amount / 2;
        return Sale(payer, receiver, amount, NOW + 1 hours, salt);
    }

    function likely(Choices memory choices, Sale memory sale, bool isRelease, bytes32 record)
        private
        view
        returns (Attempt memory by)
    {
        by.sender = someone(choices.sender);
        by.record = record;
        by.time = NOW + [0, 1799, 1800, 1801, 3599, 3600, 3601, 9000][choices.time % 8];
        uint256 kind = choices.verdict % 8;
        by.hasVerdict = kind != 0;
        (by.v, by.r, by.s) = (27, keccak256(abi.encode(choices)), bytes32(uint256(choices.amount)));
        // The correct verdict half of the time, or else one for the other outcome, one for another record, or a random
        // one.
        IEscrow.PaymentInfo memory info = terms(sale);
        if (kind > 3) (by.v, by.r, by.s) = vm.sign(ARBITER_KEY, digestOf(info, isRelease, record));
        if (kind == 3) (by.v, by.r, by.s) = vm.sign(ARBITER_KEY, digestOf(info, !isRelease, record));
        if (kind == 2) (by.v, by.r, by.s) = vm.sign(ARBITER_KEY, digestOf(info, isRelease, ~record));
    }

    function answerOf(Choices memory choices) private pure returns (ModelUsdc.Answer) {
        return ModelUsdc.Answer(choices.answer % 3);
    }

    function someone(uint8 choice) private view returns (address) {
        address[8] memory people = [
            STRANGER,
            ARBITER,
            address(0xB0B0),
            address(0xB0B1),
            address(0xB0B3),
            FEES,
            custody,
            address(uint160(uint256(keccak256(abi.encode(choice)))))
        ];
        return people[choice % 8];
    }
}
