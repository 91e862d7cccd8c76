"""``python -m agent_payment_trust``."""

import sys

from .cli import main

sys.exit(main())
