"""The options that the test shops have in common, from the environment and a shop's settings.

``late`` reads the key and the node's URL on the first request. ``exact`` adds ordinary buyers. DATABASE_URL names a
shared store.
"""

import logging
import os
import sys

from eth_account import Account

from agent_payment_trust.escrow import PostgresStore

logging.basicConfig(stream=sys.stdout, format="%(message)s")
logging.getLogger("werkzeug").setLevel(logging.ERROR)


def store():
    if "DATABASE_URL" not in os.environ:
        return None
    from psycopg_pool import ConnectionPool

    return PostgresStore(ConnectionPool(os.environ["DATABASE_URL"], open=True))


def options_of(key=None, late=False, exact=False):
    """Return the options of a shop with the key, and of its routes with a window to contest."""

    def account():
        if key is None:
            raise KeyError("key")
        return Account.from_key(key)

    def rpc_url():
        return os.environ["BASE_RPC_URL"]

    options = {
        "account": account if late else account(),
        "rpc_url": rpc_url if late else rpc_url(),
        "arbiter_url": os.environ["ARBITER_URL"],
        "price": "0.10",
        "exact": exact,
        "store": store(),
    }
    # Reads its key late, so that a shop warns of missing ETH once.
    contested = {
        **options,
        "account": account,
        "contest_seconds": 60,
        "contest_conditions": {"expect": {"expect_contains": "pond"}},
    }
    return options, contested
