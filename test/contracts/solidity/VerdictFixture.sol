// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {VerdictLib} from "../../../contracts/VerdictLib.sol";
import {UsdcFixture} from "./UsdcFixture.sol";

/// @notice Verdicts and their signatures. Hashes are computed from the published formulas, never read from the library.
abstract contract VerdictFixture is UsdcFixture {
    uint256 internal constant ARBITER_KEY = 0xa4b17e4;
    uint256 internal constant CHAIN = 8453;
    bytes32 internal constant CONDITIONS = keccak256("the agreed conditions");
    address internal constant STRANGER = 0x0000000000000000000000000000000000057a46;

    VerdictLib.Outcome internal constant ESCALATE = VerdictLib.Outcome.Escalate;
    VerdictLib.Outcome internal constant RELEASE = VerdictLib.Outcome.Release;
    VerdictLib.Outcome internal constant REFUND = VerdictLib.Outcome.Refund;

    address internal arbiter;

    function setUp() public virtual {
        installUsdc();
        arbiter = vm.addr(ARBITER_KEY);
    }

    /// @dev A verdict issued at the current timestamp.
    function verdictOf(VerdictLib.Outcome outcome, bytes32 dealRefHash)
        internal
        view
        returns (VerdictLib.Verdict memory)
    {
        return VerdictLib.Verdict({
            id: "0123456789abcdef",
            outcome: outcome,
            conditionsSha256: CONDITIONS,
            dealRefHash: dealRefHash,
            issuedAt: uint64(block.timestamp)
        });
    }

    function domainOf(uint256 chain) internal pure returns (bytes32) {
        bytes32 typehash = keccak256("EIP712Domain(string name,string version,uint256 chainId)");
        return keccak256(abi.encode(typehash, keccak256("Agent Payment Trust Arbiter"), keccak256("1"), chain));
    }

    function digestFor(VerdictLib.Verdict memory verdict, uint256 chain) internal pure returns (bytes32) {
        bytes32 structHash = keccak256(
            abi.encode(
                keccak256(
                    "Verdict(string id,string outcome,bytes32 conditionsSha256,bytes32 dealRefHash,uint64 issuedAt)"
                ),
                keccak256(bytes(verdict.id)),
                keccak256(bytes(["escalate", "release", "refund"][uint256(verdict.outcome)])),
                verdict.conditionsSha256,
                verdict.dealRefHash,
                verdict.issuedAt
            )
        );
        return keccak256(abi.encodePacked("\x19\x01", domainOf(chain), structHash));
    }

    /// @dev The arbiter's signature for the fixture's chain.
    function attested(VerdictLib.Verdict memory verdict) internal pure returns (bytes memory) {
        return signed(ARBITER_KEY, digestFor(verdict, CHAIN));
    }
}
