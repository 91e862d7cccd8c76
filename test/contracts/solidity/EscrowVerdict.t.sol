// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IEscrow} from "../../../contracts/interfaces/IEscrow.sol";
import {EscrowFixture} from "./EscrowFixture.sol";

/// @notice The arbiter's signature: what it commits to, and which forms are accepted.
contract EscrowVerdictTest is EscrowFixture {
    IEscrow.PaymentInfo private info;

    function setUp() public override {
        super.setUp();
        info = held(USD);
    }

    /// @dev Expects a release and a refund to be rejected, with `got` as the recovered signer.
    function refusedForBoth(bytes memory signature, address got) private {
        vm.expectRevert(abi.encodeWithSelector(IEscrow.NotArbiter.selector, got, arbiter));
        escrow.release(info, RECORD, signature);
        uint256 from = block.timestamp + TIMEOUT;
        vm.expectRevert(
            abi.encodeWithSelector(IEscrow.NotYetRefundable.selector, got, arbiter, block.timestamp, from)
        );
        escrow.refund(info, RECORD, signature);
        assertStatus(info, IEscrow.Status.Held);
    }

    function refusedForRelease(bytes memory signature) private {
        (bool ok, bytes memory answer) =
            address(escrow).call(abi.encodeCall(IEscrow.release, (info, RECORD, signature)));
        vm.assertTrue(!ok && bytes4(answer) == IEscrow.NotArbiter.selector, "NotArbiter");
    }

    function refusedForRefund(bytes memory signature) private {
        (bool ok, bytes memory answer) =
            address(escrow).call(abi.encodeCall(IEscrow.refund, (info, RECORD, signature)));
        vm.assertTrue(!ok && bytes4(answer) == IEscrow.NotYetRefundable.selector, "NotYetRefundable");
    }

    function sign(bool release, bytes32 record, uint256 chain, address instance) private view returns (bytes memory) {
        return signed(ARBITER_KEY, verdictDigest(idOf(info), release, record, chain, instance));
    }

    function test_theDomainIsThePublishedOne() public {
        bytes32 domain = keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                keccak256("Agent Payment Trust Escrow"),
                keccak256("1"),
                8453,
                address(escrow)
            )
        );
        vm.assertEq(escrow.DOMAIN_SEPARATOR(), domain, "domain");
        vm.assertEq(
            escrow.VERDICT_TYPEHASH(),
            keccak256("Verdict(bytes32 paymentId,bool release,bytes32 record)"),
            "typehash"
        );
        vm.chainId(84532);
        vm.assertTrue(escrow.DOMAIN_SEPARATOR() != domain, "a fork of the chain has its own domain");
    }

    function test_oneVerdictIsNotTheOther() public {
        refusedForRefund(verdict(info, true, RECORD));
        refusedForRelease(verdict(info, false, RECORD));
        escrow.release(info, RECORD, verdict(info, true, RECORD));
    }

    /// @dev If the arbiter signed both verdicts, the first one submitted is final.
    function test_withBothVerdictsTheFirstWins() public {
        bytes memory release = verdict(info, true, RECORD);
        bytes memory refund = verdict(info, false, RECORD);
        escrow.refund(info, RECORD, refund);
        vm.expectRevert(notHeld(info, IEscrow.Status.Refunded, true));
        escrow.release(info, RECORD, release);
        info = held(USD);
        escrow.release(info, RECORD, verdict(info, true, RECORD));
        bytes memory second = verdict(info, false, RECORD);
        vm.expectRevert(notHeld(info, IEscrow.Status.Released, false));
        escrow.refund(info, RECORD, second);
    }

    function testFuzz_aVerdictBindsItsRecord(bytes32 record) public {
        vm.assume(record != RECORD);
        refusedForRelease(verdict(info, true, record));
        refusedForRefund(verdict(info, false, record));
    }

    function test_aVerdictBindsItsPayment() public {
        IEscrow.PaymentInfo memory other = held(USD);
        refusedForRelease(verdict(other, true, RECORD));
        refusedForRefund(verdict(other, false, RECORD));
    }

    function testFuzz_aVerdictBindsItsChain(uint64 chain) public {
        vm.assume(chain != 8453);
        refusedForRelease(sign(true, RECORD, chain, address(escrow)));
        refusedForRefund(sign(false, RECORD, chain, address(escrow)));
    }

    function testFuzz_aVerdictBindsItsInstance(address instance) public {
        vm.assume(instance != address(escrow));
        refusedForRelease(sign(true, RECORD, block.chainid, instance));
        refusedForRefund(sign(false, RECORD, block.chainid, instance));
    }

    function testFuzz_aStrangersVerdictIsRefused(uint256 key) public {
        key = between(key, 1, type(uint128).max);
        vm.assume(key != ARBITER_KEY);
        bytes32 digest = verdictDigest(idOf(info), true, RECORD, block.chainid, address(escrow));
        vm.expectRevert(abi.encodeWithSelector(IEscrow.NotArbiter.selector, vm.addr(key), arbiter));
        escrow.release(info, RECORD, signed(key, digest));
    }

    function test_theOtherFormsOfASignatureAreRefused() public {
        bytes[2] memory signatures = [verdict(info, true, RECORD), verdict(info, false, RECORD)];
        for (uint256 i = 0; i < 2; i++) {
            (bytes32 r, uint256 s, uint8 v) = split(signatures[i]);
            refusedForBoth(highS(signatures[i]), address(0));
            refusedForBoth(compact(signatures[i]), address(0));
            refusedForBoth(bytes.concat(signatures[i], hex"00"), address(0));
            refusedForBoth(abi.encodePacked(r, s, v - 27), address(0));
            refusedForBoth(abi.encodePacked(r, s, v + 2), address(0));
            refusedForBoth(hex"00", address(0));
        }
    }

    function testFuzz_theGreatestSAndTheFirstBeyond(uint256 r) public {
        uint256 greatest = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0;
        bytes32 digest = verdictDigest(idOf(info), true, RECORD, block.chainid, address(escrow));
        address signer = ecrecover(digest, 27, bytes32(r), bytes32(greatest));
        vm.expectRevert(abi.encodeWithSelector(IEscrow.NotArbiter.selector, signer, arbiter));
        escrow.release(info, RECORD, abi.encodePacked(r, greatest, uint8(27)));
        vm.expectRevert(abi.encodeWithSelector(IEscrow.NotArbiter.selector, address(0), arbiter));
        escrow.release(info, RECORD, abi.encodePacked(r, greatest + 1, uint8(27)));
    }
}

/// @notice The same tests over base/commerce-payments.
contract OperatorVerdictTest is EscrowVerdictTest {
    function custodian() internal pure override returns (Custodian) {
        return Custodian.Commerce;
    }
}
