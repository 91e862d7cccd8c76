// SPDX-License-Identifier: UNLICENSED
pragma solidity 0.8.37;

/// @title VerdictLib
/// @notice Checks a verdict of the external arbiter in a contract: the EIP-712 signature that every verdict document
/// carries as its `attestation`.
/// @dev The domain names this chain and no contract, so that any escrow can execute a verdict. What a verdict is about is
/// in its two hashes: compare both with the deal, and form each deal's `deal_ref` so that no other contract, chain or
/// deal has the same. One claim can be asked again and again: verdicts with the same hashes and other outcomes are all
/// good, also those that a later correction supersedes. Which of them counts is the escrow's rule.
library VerdictLib {
    /// @notice What the arbiter found. The zero value pays nobody.
    enum Outcome {
        /// @dev "escalate": the conditions could not be verified. No human looks at it: the escrow chooses what follows.
        Escalate,
        /// @dev "release": every condition was verified true.
        Release,
        /// @dev "refund": at least one condition was verified false.
        Refund
    }

    /// @notice The `message` of an attestation.
    struct Verdict {
        /// @dev The verdict's id.
        string id;
        /// @dev `outcome` as a number; the arbiter signs its name.
        Outcome outcome;
        /// @dev SHA-256 of the canonical JSON (RFC 8785) of the claim's `{category, conditions}`.
        bytes32 conditionsSha256;
        /// @dev Keccak-256 of the claim's `deal_ref` in UTF-8; of nothing when it had none.
        bytes32 dealRefHash;
        /// @dev When the arbiter signed, in unix seconds.
        uint64 issuedAt;
    }

    /// @notice The verdict is not the arbiter's.
    /// @param got Its signer; zero when the signature is malformed.
    /// @param wanted The arbiter.
    error NotArbiter(address got, address wanted);
    /// @notice The verdict is dated later than the clocks of chain and arbiter may differ.
    /// @param issuedAt Its date.
    /// @param latest The latest date that counts now.
    error VerdictFromTheFuture(uint64 issuedAt, uint256 latest);
    /// @notice The verdict is too old.
    /// @param timestamp The time of this block.
    /// @param expiry The last second in which it counted.
    error VerdictExpired(uint256 timestamp, uint256 expiry);

    /// @notice The hash of the verdict's type, as EIP-712 forms it.
    bytes32 internal constant VERDICT_TYPEHASH =
        keccak256("Verdict(string id,string outcome,bytes32 conditionsSha256,bytes32 dealRefHash,uint64 issuedAt)");
    /// @notice By how many seconds the arbiter's clock may be ahead of the chain's.
    uint256 internal constant GREATEST_SKEW = 60;

    bytes32 private constant DOMAIN_TYPEHASH = keccak256("EIP712Domain(string name,string version,uint256 chainId)");
    bytes32 private constant NAME_HASH = keccak256("Agent Payment Trust Arbiter");
    bytes32 private constant VERSION_HASH = keccak256("1");
    /// @dev Half the order of secp256k1: a greater s is another form of the same signature.
    uint256 private constant GREATEST_S = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0;

    /// @notice Returns when the verdict is the arbiter's, at most `maxAge` old and not from the future.
    /// @dev Reverts, in this order, with NotArbiter, VerdictFromTheFuture, VerdictExpired.
    /// @param verdict The verdict.
    /// @param signature Its 65 bytes r, s, v: s in the lower half of the order, v 27 or 28.
    /// @param arbiter The account that the parties agreed on. Zero has no verdicts.
    /// @param maxAge For how many seconds after its date a verdict counts, the last of them included.
    function check(Verdict calldata verdict, bytes calldata signature, address arbiter, uint64 maxAge) internal view {
        address signer = _recover(digest(verdict), signature);
        if (signer == address(0) || signer != arbiter) revert NotArbiter(signer, arbiter);
        uint256 latest = block.timestamp + GREATEST_SKEW;
        if (verdict.issuedAt > latest) revert VerdictFromTheFuture(verdict.issuedAt, latest);
        uint256 expiry = uint256(verdict.issuedAt) + maxAge;
        if (block.timestamp > expiry) revert VerdictExpired(block.timestamp, expiry);
    }

    /// @notice What the arbiter signs, as EIP-712 forms it, on the chain that runs this.
    /// @param verdict The verdict.
    /// @return hash The digest.
    function digest(Verdict calldata verdict) internal view returns (bytes32 hash) {
        bytes32 structHash = keccak256(
            abi.encode(
                VERDICT_TYPEHASH,
                keccak256(bytes(verdict.id)),
                _outcomeHash(verdict.outcome),
                verdict.conditionsSha256,
                verdict.dealRefHash,
                verdict.issuedAt
            )
        );
        return keccak256(abi.encodePacked("\x19\x01", domainSeparator(), structHash));
    }

    /// @notice The EIP-712 domain of verdicts: name "Agent Payment Trust Arbiter", version "1" and the chain that runs
    /// this, also after a fork of it.
    /// @return separator The hash of the domain.
    function domainSeparator() internal view returns (bytes32 separator) {
        return keccak256(abi.encode(DOMAIN_TYPEHASH, NAME_HASH, VERSION_HASH, block.chainid));
    }

    function _outcomeHash(Outcome outcome) private pure returns (bytes32) {
        if (outcome == Outcome.Release) return keccak256("release");
        if (outcome == Outcome.Refund) return keccak256("refund");
        return keccak256("escalate");
    }

    /// @dev For a v that is neither 27 nor 28 the precompile answers with nothing, which is zero.
    function _recover(bytes32 hash, bytes calldata signature) private pure returns (address) {
        if (signature.length != 65) return address(0);
        bytes32 s = bytes32(signature[32:64]);
        if (uint256(s) > GREATEST_S) return address(0);
        return ecrecover(hash, uint8(signature[64]), bytes32(signature[:32]), s);
    }
}
