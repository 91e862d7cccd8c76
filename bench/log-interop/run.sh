#!/bin/sh
# Lets programs that are not ours read a log of ours, and ours read theirs. Needs Node 24, Go, Rust, curl and Python 3.12 or newer,
# and fetches their packages. Prints what each of them has checked, and fails at the first that disagrees.
set -eu

# aics-tlog and aics-witness say that they need 3.12. Debian 13 has 3.13, with pip in python3-venv; Debian 12 has 3.11.
python=
for one in "${PYTHON:-python3}" python3.14 python3.13 python3.12; do
  if "$one" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 12))' 2> /dev/null; then
    python=$one
    break
  fi
done
if [ -z "$python" ]; then
  echo "Python 3.12 or newer with venv is not there (apt install python3-venv on Debian 13); set PYTHON to one." >&2
  exit 1
fi

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
witness=
trap 'test -z "$witness" || kill "$witness"; rm -rf "$work"' EXIT
cd "$work"
node "$here/files.ts"

(cd "$here/go" && go build -o "$work/reader" .)
./reader

CARGO_TARGET_DIR="$work/target" cargo build -q --locked --manifest-path "$here/rust/Cargo.toml"
target/debug/interop

"$python" -m venv venv
venv/bin/pip install -q -r "$here/requirements.txt"
venv/bin/python "$here/audit.py"

venv/bin/aics-witness init -c witness.json --name witness.example/py --listen 127.0.0.1:7391 > init.txt 2>&1
venv/bin/aics-witness add-log -c witness.json --origin trust.example/log --vkey "$(cat vkey.txt)" > /dev/null 2>&1
venv/bin/aics-witness serve -c witness.json > /dev/null 2>&1 &
witness=$!
offer() { curl -sf --retry 20 --retry-connrefused --retry-delay 1 --data-binary @- http://127.0.0.1:7391/add-checkpoint; }
{ echo "old 0"; echo; cat old.txt; } | offer > /dev/null
{ echo "old 65535"; cat consistency.txt; echo; cat exported/log/checkpoint; } | offer > cosignature.txt
cat exported/log/checkpoint cosignature.txt > cosigned.txt
vkey=$(grep -ohE 'witness.example/py\+[0-9a-f]{8}\+[A-Za-z0-9+/=]+' init.txt | head -n 1)
printf 'log %s\nwitness py %s\nquorum py\n' "$(cat vkey.txt)" "$vkey" > policy.txt
node "$here/check.ts"
