// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title VerdictLib
/// @notice Verifies the external arbiter's verdicts onchain, using the EIP-712 signature that every verdict document
/// carries as its `attestation`.
/// @dev The EIP-712 domain includes the chain but no verifying contract, so any escrow can execute a verdict. Two
/// hashes identify what the verdict covers: compare both with the deal, and make each deal's `deal_ref` unique across
/// contracts, chains and deals. The same claim can be submitted more than once, so verdicts with the same hashes but
/// different outcomes are all valid, including those superseded by a correction. The escrow decides which one counts.
library VerdictLib {
    /// @notice The arbiter's finding. The zero value pays no one.
    enum Outcome {
        /// @dev "escalate": the conditions could not be verified. There is no human review; the escrow decides what
        /// happens.
        Escalate,
        /// @dev "release": every condition was verified to be true.
        Release,
        /// @dev "refund": at least one condition was verified to be false.
        Refund
    }

    /// @notice The `message` of an attestation.
    struct Verdict {
        /// @dev The verdict id.
        string id;
        /// @dev The `outcome` as an enum value; the arbiter signs its name.
        Outcome outcome;
        /// @dev SHA-256 of the canonical JSON (RFC 8785) of the claim's `{category, conditions}`.
        bytes32 conditionsSha256;
        /// @dev Keccak-256 of the claim's UTF-8 `deal_ref`, or of the empty string if it had none.
        bytes32 dealRefHash;
        /// @dev When the arbiter signed the verdict, as a Unix timestamp in seconds.
        uint64 issuedAt;
    }

    /// @notice The arbiter did not sign the verdict.
    /// @param got The recovered signer, or zero if the signature is malformed.
    /// @param wanted The arbiter.
    error NotArbiter(address got, address wanted);
    /// @notice The verdict is dated further in the future than the allowed clock skew.
    /// @param issuedAt The verdict's timestamp.
    /// @param latest The latest timestamp accepted in this block.
    error VerdictFromTheFuture(uint64 issuedAt, uint256 latest);
    /// @notice The verdict has expired.
    /// @param timestamp The block timestamp.
    /// @param expiry The last second at which the verdict was valid.
    error VerdictExpired(uint256 timestamp, uint256 expiry);

    /// @notice The EIP-712 typehash of a verdict.
    bytes32 internal constant VERDICT_TYPEHASH =
        keccak256("Verdict(string id,string outcome,bytes32 conditionsSha256,bytes32 dealRefHash,uint64 issuedAt)");
    /// @notice How many seconds the arbiter's clock may run ahead of the chain's.
    uint256 internal constant GREATEST_SKEW = 60;

    bytes32 private constant DOMAIN_TYPEHASH = keccak256("EIP712Domain(string name,string version,uint256 chainId)");
    bytes32 private constant NAME_HASH = keccak256("Agent Payment Trust Arbiter");
    bytes32 private constant VERSION_HASH = keccak256("1");
    /// @dev Half the secp256k1 order. A higher s is a malleated form of the same signature.
    uint256 private constant GREATEST_S = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0;

    /// @notice Checks that the arbiter signed the verdict, and that it is at most `maxAge` old and not dated in the
    /// future.
    /// @dev Reverts, in this order, with NotArbiter, VerdictFromTheFuture or VerdictExpired. Timestamps up to
    /// `GREATEST_SKEW` ahead are accepted.
    /// @param verdict The verdict.
    /// @param signature The 65-byte signature (r, s, v), with s in the lower half of the order and v equal to 27 or 28.
    /// @param arbiter The arbiter the parties agreed on. The zero address never passes.
    /// @param maxAge How many seconds a verdict is valid after its timestamp, inclusive.
    function check(Verdict calldata verdict, bytes calldata signature, address arbiter, uint64 maxAge) internal view {
        address signer = _recover(digest(verdict), signature);
        if (signer == address(0) || signer != arbiter) revert NotArbiter(signer, arbiter);
        uint256 latest = block.timestamp + GREATEST_SKEW;
        if (verdict.issuedAt > latest) revert VerdictFromTheFuture(verdict.issuedAt, latest);
        uint256 expiry = uint256(verdict.issuedAt) + maxAge;
        if (block.timestamp > expiry) revert VerdictExpired(block.timestamp, expiry);
    }

    /// @notice Returns the EIP-712 digest that the arbiter signs for a verdict on the current chain.
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

    /// @notice Returns the EIP-712 domain separator of verdicts: name "Agent Payment Trust Arbiter", version "1" and
    /// the current chain id, which stays correct after a chain fork.
    /// @return separator The domain separator.
    function domainSeparator() internal view returns (bytes32 separator) {
        return keccak256(abi.encode(DOMAIN_TYPEHASH, NAME_HASH, VERSION_HASH, block.chainid));
    }

    function _outcomeHash(Outcome outcome) private pure returns (bytes32) {
        if (outcome == Outcome.Release) return keccak256("release");
        if (outcome == Outcome.Refund) return keccak256("refund");
        return keccak256("escalate");
    }

    /// @dev `ecrecover` returns zero unless v is 27 or 28.
    function _recover(bytes32 hash, bytes calldata signature) private pure returns (address) {
        if (signature.length != 65) return address(0);
        bytes32 s = bytes32(signature[32:64]);
        if (uint256(s) > GREATEST_S) return address(0);
        return ecrecover(hash, uint8(signature[64]), bytes32(signature[:32]), s);
    }
}
