// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {VerdictLib} from "../../../contracts/VerdictLib.sol";
import {VerdictFixture} from "./VerdictFixture.sol";

/// @notice Exposes the library's internal functions.
contract VerdictReader {
    function check(VerdictLib.Verdict calldata verdict, bytes calldata signature, address arbiter, uint64 maxAge)
        external
        view
    {
        VerdictLib.check(verdict, signature, arbiter, maxAge);
    }

    function digest(VerdictLib.Verdict calldata verdict) external view returns (bytes32) {
        return VerdictLib.digest(verdict);
    }

    function domainSeparator() external view returns (bytes32) {
        return VerdictLib.domainSeparator();
    }

    function typehash() external pure returns (bytes32) {
        return VerdictLib.VERDICT_TYPEHASH;
    }
}

/// @notice The arbiter's attestation: what it commits to, which signature forms are accepted, and for how long.
contract VerdictLibTest is VerdictFixture {
    /// @dev A verdict with a raw outcome: the fuzzer would generate out-of-range enum values.
    struct Fields {
        string id;
        uint256 outcome;
        bytes32 conditionsSha256;
        bytes32 dealRefHash;
        uint64 issuedAt;
    }

    uint64 private constant MAX_AGE = 3600;
    uint256 private constant SKEW = 60;

    VerdictReader private reader;
    VerdictLib.Verdict private verdict;

    function setUp() public override {
        super.setUp();
        reader = new VerdictReader();
        verdict = verdictOf(RELEASE, keccak256("a deal"));
    }

    function accepted(bytes memory signature) private view {
        reader.check(verdict, signature, arbiter, MAX_AGE);
    }

    function refused(bytes memory signature, address got) private {
        vm.expectRevert(abi.encodeWithSelector(VerdictLib.NotArbiter.selector, got, arbiter));
        reader.check(verdict, signature, arbiter, MAX_AGE);
    }

    /// @dev Expects NotArbiter for any signer that the signature recovers to.
    function refused(VerdictLib.Verdict memory other, bytes memory signature) private view {
        try reader.check(other, signature, arbiter, MAX_AGE) {
            vm.assertTrue(false, "another verdict is refused");
        } catch (bytes memory reason) {
            vm.assertEq(bytes32(bytes4(reason)), bytes32(VerdictLib.NotArbiter.selector), "the reason");
        }
    }

    function test_domainAndTypeAreThePublishedOnes() public {
        vm.assertEq(
            reader.typehash(),
            keccak256("Verdict(string id,string outcome,bytes32 conditionsSha256,bytes32 dealRefHash,uint64 issuedAt)"),
            "typehash"
        );
        vm.assertEq(reader.domainSeparator(), domainOf(CHAIN), "domain");
        vm.chainId(84532);
        vm.assertEq(reader.domainSeparator(), domainOf(84532), "a fork of the chain has its own domain");
    }

    function madeOf(Fields calldata any) private pure returns (VerdictLib.Verdict memory) {
        VerdictLib.Outcome outcome = VerdictLib.Outcome(any.outcome % 3);
        return VerdictLib.Verdict(any.id, outcome, any.conditionsSha256, any.dealRefHash, any.issuedAt);
    }

    function testFuzz_theDigestIsEip712(Fields calldata any) public view {
        vm.assertEq(reader.digest(madeOf(any)), digestFor(madeOf(any), CHAIN), "digest");
    }

    function testFuzz_theArbitersVerdictIsGood(Fields calldata any, uint64 maxAge) public {
        vm.warp(any.issuedAt);
        reader.check(madeOf(any), attested(madeOf(any)), arbiter, maxAge);
    }

    function testFuzz_everyFieldIsBoundByTheSignature(string calldata id, bytes32 hash, uint64 time) public view {
        vm.assume(keccak256(bytes(id)) != keccak256(bytes(verdict.id)) && time != verdict.issuedAt);
        vm.assume(hash != verdict.conditionsSha256 && hash != verdict.dealRefHash);
        bytes memory signature = attested(verdict);
        VerdictLib.Verdict[5] memory others = [verdict, verdict, verdict, verdict, verdict];
        others[0].id = id;
        others[1].conditionsSha256 = hash;
        others[2].dealRefHash = hash;
        others[3].issuedAt = time;
        (others[4].conditionsSha256, others[4].dealRefHash) = (verdict.dealRefHash, verdict.conditionsSha256);
        for (uint256 i = 0; i < others.length; i++) {
            refused(others[i], signature);
        }
    }

    function test_oneOutcomeIsNotTheOther() public {
        for (uint256 signedFor = 0; signedFor < 3; signedFor++) {
            verdict.outcome = VerdictLib.Outcome(signedFor);
            bytes memory signature = attested(verdict);
            for (uint256 shown = 0; shown < 3; shown++) {
                verdict.outcome = VerdictLib.Outcome(shown);
                if (shown == signedFor) accepted(signature);
                else refused(verdict, signature);
            }
        }
    }

    function testFuzz_aStrangersSignatureIsRefused(uint256 key) public {
        key = between(key, 1, type(uint128).max);
        vm.assume(key != ARBITER_KEY);
        refused(signed(key, digestFor(verdict, CHAIN)), vm.addr(key));
    }

    function testFuzz_aVerdictBindsItsChain(uint64 chain) public {
        vm.assume(chain != CHAIN);
        refused(verdict, signed(ARBITER_KEY, digestFor(verdict, chain)));
        bytes memory signature = attested(verdict);
        vm.chainId(chain);
        refused(verdict, signature);
    }

    function test_theOtherFormsOfASignatureAreRefused() public {
        bytes memory signature = attested(verdict);
        (bytes32 r, uint256 s, uint8 v) = split(signature);
        accepted(abi.encodePacked(r, s, v));
        refused(highS(signature), address(0));
        refused(compact(signature), address(0));
        refused(bytes.concat(signature, hex"00"), address(0));
        refused(abi.encodePacked(r, s, v - 27), address(0));
        refused(abi.encodePacked(r, s, v + 2), address(0));
        refused(abi.encodePacked(bytes32(0), s, v), address(0));
    }

    function testFuzz_aCutSignatureIsRefused(uint256 length) public {
        bytes memory signature = attested(verdict);
        length = between(length, 0, 64);
        assembly ("memory-safe") {
            mstore(signature, length)
        }
        refused(signature, address(0));
    }

    function testFuzz_theGreatestSAndTheFirstBeyond(uint256 r) public {
        uint256 greatest = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0;
        address signer = ecrecover(digestFor(verdict, CHAIN), 27, bytes32(r), bytes32(greatest));
        refused(abi.encodePacked(r, greatest, uint8(27)), signer);
        refused(abi.encodePacked(r, greatest + 1, uint8(27)), address(0));
    }

    /// @dev A malformed signature recovers to zero, so an unset arbiter must not make every signature valid.
    function testFuzz_anArbiterOfZeroHasNoVerdicts(bytes calldata signature) public {
        arbiter = address(0);
        vm.assume(signature.length != 65);
        refused(signature, address(0));
    }

    function testFuzz_aVerdictCountsForItsAge(uint64 issuedAt, uint64 maxAge) public {
        verdict.issuedAt = issuedAt;
        bytes memory signature = attested(verdict);
        uint256 expiry = uint256(issuedAt) + maxAge;
        vm.warp(expiry);
        reader.check(verdict, signature, arbiter, maxAge);
        vm.warp(expiry + 1);
        vm.expectRevert(abi.encodeWithSelector(VerdictLib.VerdictExpired.selector, expiry + 1, expiry));
        reader.check(verdict, signature, arbiter, maxAge);
    }

    function testFuzz_aVerdictMayBeAMinuteAheadAndNoMore(uint64 issuedAt) public {
        verdict.issuedAt = uint64(between(issuedAt, SKEW + 1, type(uint64).max));
        bytes memory signature = attested(verdict);
        vm.warp(verdict.issuedAt - SKEW);
        accepted(signature);
        vm.warp(verdict.issuedAt - SKEW - 1);
        vm.expectRevert(
            abi.encodeWithSelector(
                VerdictLib.VerdictFromTheFuture.selector, verdict.issuedAt, uint256(verdict.issuedAt) - 1
            )
        );
        accepted(signature);
    }

    /// @dev A forged verdict fails with NotArbiter at any date.
    function test_theSignatureIsCheckedBeforeTheDate() public {
        bytes memory signature = signed(ARBITER_KEY + 1, digestFor(verdict, CHAIN));
        vm.warp(block.timestamp + MAX_AGE + 1);
        refused(signature, vm.addr(ARBITER_KEY + 1));
    }
}
