// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IEscrow} from "../../../contracts/interfaces/IEscrow.sol";
import {EscrowFixture} from "./EscrowFixture.sol";

/// @notice The payer's signature: what it commits to, and that no one else can use it.
contract EscrowSignatureTest is EscrowFixture {
    bytes private constant INVALID = "FiatTokenV2: invalid signature";
    IEscrow.PaymentInfo private info;
    bytes private signature;

    function setUp() public override {
        super.setUp();
        info = terms(payer, USD);
        fund(payer, 2 * USD);
        signature = paid(PAYER_KEY, info);
    }

    /// @dev The correct terms can still be held after each of these: the nonce is unused.
    modifier leavesThePaymentOpen() {
        _;
        assertBalance(payer, 2 * USD);
        assertBalance(store(), 0);
        authorize(info, signature);
        assertStatus(info, IEscrow.Status.Held);
    }

    function refused(bytes memory other) private {
        vm.expectRevert(INVALID);
        authorize(info, other);
    }

    function test_everyFieldThatIsNotPinnedIsBoundByTheSignature() public leavesThePaymentOpen {
        IEscrow.PaymentInfo[7] memory others;
        for (uint256 i = 0; i < others.length; i++) {
            others[i] = abi.decode(abi.encode(info), (IEscrow.PaymentInfo));
        }
        others[0].payer = vm.addr(PAYER_KEY + 1);
        fund(others[0].payer, USD);
        others[1].receiver = STRANGER;
        others[2].maxAmount += 1;
        others[3].preApprovalExpiry += 1;
        others[4].authorizationExpiry += 1;
        others[5].refundExpiry += 1;
        others[6].salt += 1;
        for (uint256 i = 0; i < others.length; i++) {
            vm.expectRevert(INVALID);
            authorize(others[i], signature);
        }
    }

    function test_theOtherFormsOfASignatureAreRefused() public leavesThePaymentOpen {
        vm.expectRevert("ECRecover: invalid signature 's' value");
        authorize(info, highS(signature));
        vm.expectRevert("ECRecover: invalid signature length");
        authorize(info, compact(signature));
        vm.expectRevert("ECRecover: invalid signature length");
        authorize(info, bytes.concat(signature, hex"00"));
        vm.expectRevert("ECRecover: invalid signature length");
        authorize(info, "");
        (bytes32 r, uint256 s, uint8 v) = split(signature);
        vm.expectRevert("ECRecover: invalid signature 'v' value");
        authorize(info, abi.encodePacked(r, s, v - 27));
    }

    function testFuzz_aStrangersSignatureIsRefused(uint256 key) public leavesThePaymentOpen {
        key = between(key, 1, type(uint128).max);
        vm.assume(key != PAYER_KEY);
        refused(paid(key, info));
    }

    function test_aPayerOfZeroIsRefused() public {
        info.payer = address(0);
        // The second of these makes ecrecover return the zero address.
        refused(abi.encodePacked(bytes32(uint256(1)), bytes32(uint256(1)), uint8(27)));
        vm.expectRevert("ECRecover: invalid signature");
        authorize(info, abi.encodePacked(bytes32(0), bytes32(uint256(1)), uint8(27)));
    }

    function test_aSignatureForAnotherChainIsRefused() public leavesThePaymentOpen {
        bytes32 nonce = nonceOf(info, 84532, custody());
        refused(signed(PAYER_KEY, usdcDigest(authorizationHash(RECEIVE_TYPEHASH, info, nonce, payee()))));
        vm.chainId(84532);
        bytes memory foreign = paid(PAYER_KEY, info);
        vm.chainId(8453);
        refused(foreign);
    }

    function test_aSignatureForAnotherInstanceIsRefused() public leavesThePaymentOpen {
        IEscrow first = escrow;
        escrow = newEscrow();
        info.operator = address(escrow);
        refused(signature);
        bytes memory elsewhere = paid(PAYER_KEY, info);
        escrow = first;
        info.operator = address(first);
        refused(elsewhere);
    }

    /// @dev A thief with an observed signature can only hold the payment.
    function testFuzz_aStolenSignatureMovesNothing(address thief) public leavesThePaymentOpen {
        // Circle's proxy rejects calls from its admin, here the zero address, and USDC blacklists itself.
        vm.assume(thief != payee() && thief != address(0) && thief != address(USDC));
        bytes32 nonce = nonceOf(info);
        vm.prank(thief);
        vm.expectRevert("FiatTokenV2: caller must be the payee");
        USDC.receiveWithAuthorization(payer, payee(), USD, 0, info.preApprovalExpiry, nonce, signature);
        vm.prank(thief);
        vm.expectRevert(INVALID);
        USDC.receiveWithAuthorization(payer, thief, USD, 0, info.preApprovalExpiry, nonce, signature);
        vm.prank(thief);
        vm.expectRevert(INVALID);
        USDC.transferWithAuthorization(payer, payee(), USD, 0, info.preApprovalExpiry, nonce, signature);
    }

    function test_aSignatureOfATransferIsRefused() public leavesThePaymentOpen {
        refused(signed(PAYER_KEY, usdcDigest(authorizationHash(TRANSFER_TYPEHASH, info))));
    }

    function test_aCancelledAuthorizationIsRefused() public {
        bytes32 hash = keccak256(abi.encode(CANCEL_TYPEHASH, payer, nonceOf(info)));
        USDC.cancelAuthorization(payer, nonceOf(info), signed(PAYER_KEY, usdcDigest(hash)));
        vm.expectRevert("FiatTokenV2: authorization is used or canceled");
        authorize(info, signature);
        assertStatus(info, IEscrow.Status.None);
        assertBalance(payer, 2 * USD);
    }

    function test_aPayerWithTooLittleIsRefused() public {
        vm.prank(payer);
        USDC.transfer(STRANGER, USD + 1);
        vm.expectRevert("ERC20: transfer amount exceeds balance");
        authorize(info, signature);
        assertStatus(info, IEscrow.Status.None);
    }

    function test_nothingIsHeldWhileUsdcIsPaused() public leavesThePaymentOpen {
        setPaused(true);
        vm.expectRevert("Pausable: paused");
        authorize(info, signature);
        setPaused(false);
    }

    function test_nothingIsHeldForABlacklistedPayerNorByABlacklistedCollectorOrEscrow() public leavesThePaymentOpen {
        address[3] memory accounts = [payer, payee(), store()];
        for (uint256 i = 0; i < accounts.length; i++) {
            setBlacklisted(accounts[i], true);
            vm.expectRevert("Blacklistable: account is blacklisted");
            authorize(info, signature);
            setBlacklisted(accounts[i], false);
        }
    }
}

/// @notice The same tests over base/commerce-payments.
contract OperatorSignatureTest is EscrowSignatureTest {
    function custodian() internal pure override returns (Custodian) {
        return Custodian.Commerce;
    }
}
