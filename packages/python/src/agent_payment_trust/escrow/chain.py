"""All reads from the chain, and all transactions, of a seller."""

from __future__ import annotations

import asyncio
import random
import re
import time
from dataclasses import dataclass
from typing import Any, Literal
from weakref import WeakValueDictionary

import httpx
from eth_abi.abi import decode
from eth_abi.exceptions import DecodingError
from eth_account.signers.local import LocalAccount
from eth_typing import BlockNumber, ChecksumAddress, HexStr
from eth_utils.address import is_address, to_checksum_address
from eth_utils.crypto import keccak
from eth_utils.currency import from_wei
from web3 import AsyncHTTPProvider, AsyncWeb3, HTTPProvider, Web3
from web3.contract.async_contract import AsyncContract, AsyncContractFunction
from web3.exceptions import ContractCustomError, ContractLogicError, Web3Exception, Web3RPCError
from web3.types import TxReceipt

from .exact import ExactPayment
from .payment import Payment
from .payment_info import MEMBERS, PRIMARY_TYPE, TYPES, ZERO_ADDRESS
from .terms import AUTH_CAPTURE, COMMERCE, LEAST_SECONDS_VALID, EscrowFacts, Token

Status = Literal["none", "held", "released", "refunded"]
_STATUSES: tuple[Status, ...] = ("none", "held", "released", "refunded")

_ATTEMPTS = 6
_MINED_WITHIN_SECONDS = 60
#: The gas limit of a hold: an account uses up to 178,000, a contract wallet that checks its signature slightly more.
_HOLD_GAS = 250_000
#: The gas limit of a transfer, which uses up to 100,000, or more for a contract wallet that checks its signature.
_TRANSFER_GAS = 250_000
#: More than the lifetime of an authorization; nodes limit the range of one search.
_SEARCHED_BLOCKS = 1_000
#: The number of blocks that common nodes search per request, and the number of requests: 11 days on Base.
_BLOCKS_A_REQUEST, _MOST_REQUESTS = 10_000, 50
_DELIVERY_DOMAIN = ("Agent Payment Trust Delivery", "1")
_ERC_1271_VALID = bytes.fromhex("1626ba7e")

#: The contracts' errors, by selector.
_ERRORS = {
    keccak(text=text)[:4]: (text.partition("(")[0], text.partition("(")[2].rstrip(")").split(","))
    for text in (
        "WrongOperator(address,address)",
        "WrongCollector(address,address)",
        "WrongToken(address,address)",
        "WrongReceiver(address)",
        "WrongFee(uint16,uint16,uint16)",
        "WrongFeeReceiver(address,address)",
        "WrongAmount(uint256,uint256)",
        "BelowMinimum(uint256,uint256)",
        "WrongExpiries(uint48,uint48,uint48)",
        "WrongStatus(bytes32,uint8,uint8)",
        "PreApprovalExpired(uint256,uint48)",
        "AfterPreApprovalExpiry(uint48,uint48)",
        "InvalidExpiries(uint48,uint48,uint48)",
        "PaymentAlreadyCollected(bytes32)",
    )
}
#: The contracts' errors for a payment that someone else has just held.
_HELD_MEANWHILE = ("WrongStatus", "PaymentAlreadyCollected")


def _function(name: str, inputs: list[Any], outputs: list[str], mutability: str = "view") -> dict[str, Any]:
    returned = [{"name": "", "type": kind} for kind in outputs]
    return {"type": "function", "name": name, "inputs": inputs, "outputs": returned, "stateMutability": mutability}


_INFO = {"name": "info", "type": "tuple", "components": [{"name": name, "type": kind} for name, kind in MEMBERS]}
_ABI: list[Any] = [
    _function(
        "authorize",
        [
            _INFO,
            {"name": "amount", "type": "uint256"},
            {"name": "collector", "type": "address"},
            {"name": "signature", "type": "bytes"},
        ],
        [],
        "nonpayable",
    ),
    _function("payments", [{"name": "id", "type": "bytes32"}], ["uint8", "uint48"]),
    *(_function(name, [], ["address"]) for name in ("ESCROW", "COLLECTOR", "USDC", "FEE_RECIPIENT")),
    _function("owed", [{"name": "account", "type": "address"}], ["uint256"]),
    *(_function(name, [], ["string"]) for name in ("name", "version")),
    _function("authorizationState", [{"name": "a", "type": "address"}, {"name": "n", "type": "bytes32"}], ["bool"]),
    _function(
        "transferWithAuthorization",
        [*TYPES[PRIMARY_TYPE], {"name": "signature", "type": "bytes"}],
        [],
        "nonpayable",
    ),
    _function("isValidSignature", [{"name": "hash", "type": "bytes32"}, {"name": "s", "type": "bytes"}], ["bytes4"]),
]
_HELD = keccak(text="Held(bytes32,address,address,uint256,uint48,uint48,uint48,uint256,uint48)")
_USED = keccak(text="AuthorizationUsed(address,bytes32)")
_TRANSFER = keccak(text="Transfer(address,address,uint256)")


@dataclass(frozen=True)
class PaymentState:
    status: Status
    #: Unix seconds from which anyone may refund the hold; 0 if it was never held.
    refundable_from: int


@dataclass(frozen=True)
class Held:
    """A hold on the chain."""

    transaction: str
    refundable_from: int
    #: Whether this call made it.
    is_own: bool


@dataclass(frozen=True)
class NotHeld:
    """There is no hold. ``refused``: a contract refused it, and nothing was sent."""

    status: Literal["refused", "released", "refunded"]
    why: str = ""


#: One sender at a time per account, so that two transactions never use the same nonce.
_sending: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()


class Chain:
    """A node, and the account that sends holds and pays their gas."""

    def __init__(self, rpc_url: str, account: LocalAccount) -> None:
        self._web3 = AsyncWeb3(AsyncHTTPProvider(rpc_url))
        self._account = account
        self._sending = _sending.setdefault(account.address, asyncio.Lock())

    async def read_escrows(self, arbiter_url: str) -> list[EscrowFacts]:
        """Read the contracts that the service arbitrates on this chain, at most one per scheme.

        The ones that stock clients can pay come first.

        :raises Exception: if the service or the node does not respond, or the service arbitrates none here
        """
        chain_id = await self._web3.eth.chain_id
        url = f"{arbiter_url}/escrow"
        async with httpx.AsyncClient(timeout=10) as http:
            response = await http.get(url, headers={"accept": "application/json"})
        policy = response.raise_for_status().json()
        stated = policy.get("forward", {}).get("domain", {})
        domain = stated.get("name"), stated.get("version")
        known: dict[str, EscrowFacts] = {}
        for contract in policy["contracts"]:
            is_here = contract.get("network") == f"eip155:{chain_id}" and is_address(contract.get("address"))
            if is_here and str(contract.get("validity", "current")).startswith("current"):
                facts = await self._facts(chain_id, contract["address"], domain)
                known.setdefault(facts.scheme, facts)
        if not known:
            raise LookupError(f"{url} names no current escrow contract on eip155:{chain_id}.")
        return [known[scheme] for scheme in (AUTH_CAPTURE, COMMERCE) if scheme in known]

    async def _facts(self, chain_id: int, address: str, domain: tuple[Any, Any]) -> EscrowFacts:
        contract = self._contract(address)
        scheme = AUTH_CAPTURE
        try:
            custody = await contract.functions.ESCROW().call()
            collector = await contract.functions.COLLECTOR().call()
        except Web3Exception:
            # Nodes report a missing function in as many ways as their own failures, so only a result counts.
            await contract.functions.owed(ZERO_ADDRESS).call()
            scheme, custody, collector = COMMERCE, contract.address, contract.address
        token = self._contract(await contract.functions.USDC().call())
        name, version = await token.functions.name().call(), await token.functions.version().call()
        return EscrowFacts(
            scheme=scheme,
            chain_id=chain_id,
            address=contract.address,
            custody=custody,
            collector=collector,
            usdc=Token(token.address, name, version),
            fee_receiver=await contract.functions.FEE_RECIPIENT().call(),
            delivery_domain=domain if all(isinstance(one, str) for one in domain) else _DELIVERY_DOMAIN,
        )

    async def state(self, payment: Payment) -> PaymentState:
        code, refundable_from = await self._contract_of(payment).functions.payments(payment.id).call()
        return PaymentState(_STATUSES[code], refundable_from)

    async def latest_time(self) -> float:
        """Return the time of the chain's head or of this machine, whichever is later, in Unix seconds."""
        block = await self._web3.eth.get_block("latest")
        return max(float(block["timestamp"]), time.time())

    async def accepts_signature(self, wallet: str, digest: bytes, signature: bytes) -> bool:
        """Return whether a wallet's contract accepts a signature (ERC-1271).

        :raises Exception: if the node fails
        """
        contract = self._contract(wallet)
        call = HexStr(contract.encode_abi("isValidSignature", args=[digest, signature]))
        try:
            data = await self._web3.eth.call({"to": contract.address, "data": call, "gas": _HOLD_GAS})
        except (ContractLogicError, Web3RPCError) as error:
            if _has_reverted(error):
                return False
            raise
        return bytes(data[:4]) == _ERC_1271_VALID

    async def hold(self, payment: Payment) -> Held | NotHeld:
        """Put a payment on the chain exactly once: a hold is sent only while the chain shows none.

        :raises Exception: if it remains unknown whether the payment is held
        """
        last: Exception = TimeoutError(f"Payment 0x{payment.id.hex()} was not held after {_ATTEMPTS} attempts.")
        for attempt in range(_ATTEMPTS):
            state = await self.state(payment)
            if state.status == "released" or state.status == "refunded":
                return NotHeld(state.status)
            if state.status == "held":
                return Held(await self._transaction_of(payment), state.refundable_from, False)
            if payment.info.pre_approval_expiry < time.time() + LEAST_SECONDS_VALID:
                return NotHeld("refused", f"its validBefore is {payment.info.pre_approval_expiry}, which is too soon")
            call = self._authorize(payment)
            refusal = await self._simulate(call, _HOLD_GAS)
            if refusal is not None and refusal[0] not in _HELD_MEANWHILE:
                return NotHeld("refused", refusal[1])
            if refusal is None:
                try:
                    receipt = await self._send(call, payment.offer.escrow.chain_id, _HOLD_GAS)
                    held = _held_in(receipt, payment)
                    if held is not None:
                        return held
                except (Web3Exception, ValueError, OSError, asyncio.TimeoutError) as error:
                    last = error
            # Another process was faster, or used this account's nonce; its effect will soon be visible on the chain.
            await asyncio.sleep(0.1 * 2**attempt * (1 + random.random()))
        raise last

    async def paid_by(self, payment: ExactPayment) -> str | None:
        """Return the transaction that made an ordinary payment.

        None while its authorization is unused; ``elsewhere`` if it is used but no transaction shows this payment.
        """
        usdc = self._contract(payment.offer.escrow.usdc.address)
        if not await usdc.functions.authorizationState(payment.payer, payment.nonce).call():
            return None
        head: int = await self._web3.eth.block_number
        payer = payment.payer.lower().removeprefix("0x")
        topics = [HexStr(f"0x{_USED.hex()}"), HexStr(f"0x{payer:0>64}"), HexStr(f"0x{payment.nonce.hex()}")]
        start = BlockNumber(max(0, head - _SEARCHED_BLOCKS))
        logs = await self._web3.eth.get_logs({"address": usdc.address, "topics": topics, "fromBlock": start})
        if not logs:
            return "elsewhere"
        transaction = logs[0]["transactionHash"]
        receipt = await self._web3.eth.get_transaction_receipt(transaction)
        return f"0x{bytes(transaction).hex()}" if _has_paid(receipt, payment) else "elsewhere"

    async def refused_by_usdc(self, payment: ExactPayment) -> str | None:
        """Return the reason why USDC would refuse an ordinary payment, or None if it would not.

        :raises Exception: if the node fails
        """
        refusal = await self._simulate(self._transfer(payment), _TRANSFER_GAS)
        return None if refusal is None else refusal[1]

    async def settle(self, payment: ExactPayment) -> str | None:
        """Send an ordinary payment, and return its transaction. None if it reverted.

        :raises Exception: if it is unknown whether it was mined
        """
        receipt = await self._send(self._transfer(payment), payment.offer.escrow.chain_id, _TRANSFER_GAS)
        return f"0x{bytes(receipt['transactionHash']).hex()}" if receipt["status"] == 1 else None

    def _transfer(self, payment: ExactPayment) -> AsyncContractFunction:
        usdc = self._contract(payment.offer.escrow.usdc.address)
        times = payment.valid_after, payment.valid_before
        return usdc.functions.transferWithAuthorization(
            payment.payer, payment.payee, payment.value, *times, payment.nonce, payment.signature
        )

    async def _simulate(self, call: AsyncContractFunction, gas: int) -> tuple[str, str] | None:
        """Return the name and the text of a contract's refusal, or None if it would accept the call."""
        try:
            await call.call({"from": self._account.address, "gas": gas})
        except ContractCustomError as error:
            return _described(str(error.data))
        except (ContractLogicError, Web3RPCError) as error:
            if _has_reverted(error):
                return "Error", str(error.message or "it reverts without a reason")
            raise
        return None

    async def _send(self, call: AsyncContractFunction, chain_id: int, gas: int) -> TxReceipt:
        async with self._sending:
            nonce = await self._web3.eth.get_transaction_count(self._account.address, "pending")
            transaction = await call.build_transaction(
                {"from": self._account.address, "nonce": nonce, "gas": gas, "chainId": chain_id}
            )
            fields: dict[str, Any] = {**transaction}
            signed = self._account.sign_transaction(fields)
            sent = await self._web3.eth.send_raw_transaction(signed.raw_transaction)
        return await self._web3.eth.wait_for_transaction_receipt(sent, _MINED_WITHIN_SECONDS, 0.25)

    async def _transaction_of(self, payment: Payment) -> str:
        """Return the transaction of a hold, searching the newest blocks first."""
        to: int = await self._web3.eth.block_number
        for _ in range(_MOST_REQUESTS):
            start = max(0, to - _BLOCKS_A_REQUEST + 1)
            logs = await self._web3.eth.get_logs(
                {
                    "address": to_checksum_address(payment.offer.escrow.address),
                    "topics": [HexStr(f"0x{_HELD.hex()}"), HexStr(f"0x{payment.id.hex()}")],
                    "fromBlock": BlockNumber(start),
                    "toBlock": BlockNumber(to),
                }
            )
            if logs:
                return f"0x{bytes(logs[0]['transactionHash']).hex()}"
            if start == 0:
                break
            to = start - 1
        raise LookupError(f"Payment 0x{payment.id.hex()} is held, but the node does not return its event.")

    def _authorize(self, payment: Payment) -> AsyncContractFunction:
        info, collector = payment.info, payment.offer.escrow.collector
        members = info.as_tuple(), info.max_amount, collector, payment.signature
        return self._contract_of(payment).functions.authorize(*members)

    def _contract_of(self, payment: Payment) -> AsyncContract:
        return self._contract(payment.offer.escrow.address)

    def _contract(self, address: str) -> AsyncContract:
        return self._web3.eth.contract(address=to_checksum_address(address), abi=_ABI)


def short_of_gas(rpc_url: str, address: ChecksumAddress) -> str | None:
    """Return a warning if an account cannot pay for the gas of a hold, or None if it can.

    :raises Exception: if the node does not respond
    """
    eth = Web3(HTTPProvider(rpc_url)).eth
    balance = eth.get_balance(address)
    if balance >= _HOLD_GAS * eth.gas_price:
        return None
    return (
        f"The merchant's account {address} has {from_wei(balance, 'ether')} ETH, too little for the gas of a hold: "
        "sales fail until it has more."
    )


def _has_reverted(error: Web3Exception) -> bool:
    """Return whether a call reverted or ran out of gas, as opposed to a failure of the node."""
    return isinstance(error, ContractLogicError) or re.search("out ?of ?gas", str(error), re.IGNORECASE) is not None


def _held_in(receipt: TxReceipt, payment: Payment) -> Held | None:
    """Return the hold according to its own receipt, because another node may lag; None if it reverted."""
    for log in receipt["logs"]:
        topics = [bytes(topic) for topic in log["topics"]]
        is_ours = log["address"].lower() == payment.offer.escrow.address.lower()
        if is_ours and topics[:2] == [_HELD, payment.id]:
            refundable_from = int.from_bytes(bytes(log["data"])[-32:], "big")
            return Held(f"0x{bytes(receipt['transactionHash']).hex()}", refundable_from, True)
    return None


def _has_paid(receipt: TxReceipt, payment: ExactPayment) -> bool:
    """Return whether a transaction made a payment.

    The transfer must directly follow its authorization, because another transfer may have the same amount.
    """
    usdc = payment.offer.escrow.usdc.address.lower()
    shown = [
        ([bytes(topic) for topic in log["topics"]], bytes(log["data"]))
        for log in receipt["logs"]
        if log["address"].lower() == usdc
    ]
    events = [event for event in shown if event[0] and event[0][0] in (_USED, _TRANSFER)]
    at = next((at for at, (topics, _) in enumerate(events) if topics[0] == _USED and topics[2] == payment.nonce), None)
    if at is None or at + 1 == len(events):
        return False
    topics, data = events[at + 1]
    parties = [bytes.fromhex(one.removeprefix("0x")) for one in (payment.payer, payment.payee)]
    is_between = topics[0] == _TRANSFER and [topic[12:] for topic in topics[1:3]] == parties
    return is_between and int.from_bytes(data, "big") == payment.value


def _described(data: str) -> tuple[str, str]:
    raw = bytes.fromhex(data.removeprefix("0x"))
    if raw[:4] not in _ERRORS:
        return data[:10], f"error {data[:10]}"
    name, kinds = _ERRORS[raw[:4]]
    try:
        values = ", ".join(str(value) for value in decode(kinds, raw[4:]))
    except DecodingError:
        values = "?"
    return name, f"{name}({values})"
