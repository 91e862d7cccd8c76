"""The options that the test shops have in common, from the environment.

KEYS=late reads MERCHANT_PRIVATE_KEY on the first request. EXACT adds ordinary buyers. DATABASE_URL names a shared store.
"""

import logging
import os
import sys

from eth_account import Account

from agent_payment_trust.escrow import PostgresStore

logging.basicConfig(stream=sys.stdout, format="%(message)s")
logging.getLogger("werkzeug").setLevel(logging.ERROR)


def account():
    return Account.from_key(os.environ["MERCHANT_PRIVATE_KEY"])


def rpc_url():
    return os.environ["BASE_RPC_URL"]


def store():
    if "DATABASE_URL" not in os.environ:
        return None
    from psycopg_pool import ConnectionPool

    return PostgresStore(ConnectionPool(os.environ["DATABASE_URL"], open=True))


is_late = os.environ.get("KEYS") == "late"
options = {
    "account": account if is_late else account(),
    "rpc_url": rpc_url if is_late else rpc_url(),
    "arbiter_url": os.environ["ARBITER_URL"],
    "price": "0.10",
    "exact": "EXACT" in os.environ,
    "store": store(),
}
#: Reads its key late, so that a shop warns of missing ETH once.
contested_options = {
    **options,
    "account": account,
    "contest_seconds": 60,
    "contest_conditions": {"expect": {"expect_contains": "pond"}},
}
