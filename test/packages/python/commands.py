"""Runs the program for each line, a JSON list of its arguments. Prints its exit code and its output as JSON."""

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout

from agent_payment_trust.cli import main

for line in sys.stdin:
    with redirect_stdout(io.StringIO()) as stdout, redirect_stderr(io.StringIO()) as stderr:
        code = main(json.loads(line))
    print(json.dumps({"code": code, "stdout": stdout.getvalue(), "stderr": stderr.getvalue()}), flush=True)
