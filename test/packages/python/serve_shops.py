"""Serves several shops in one process, because importing web3 takes longer than most tests."""

import json
import os
import sys
from threading import Thread


def serve_shops(open_shop):
    """Serve a shop on each port in the arguments, with its settings from the list in SHOPS."""
    shops = zip(sys.argv[1:], json.loads(os.environ["SHOPS"]), strict=True)
    threads = [Thread(target=open_shop, args=(int(port),), kwargs=settings) for port, settings in shops]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
