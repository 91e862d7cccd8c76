# Reads the exported log as Python's aics-tlog does: its checkpoint, every tile and every entry.
import base64
from pathlib import Path

from aics_tlog import (
    FileSystemTileReader, MerkleTree, audit_tiles, consistency_proof_from_tiles, parse_checkpoint, parse_note,
    parse_vkey, tree_root_from_tiles, verify_checkpoint,
)
from aics_tlog.tiles import parse_entry_bundle, tile_width_at

LOG = Path("exported/log")
note = parse_note((LOG / "checkpoint").read_text())
head = parse_checkpoint(note.text)
log, witness = (parse_vkey(Path(name).read_text()) for name in ("vkey.txt", "wkey.txt"))
print("python: checkpoint:", verify_checkpoint(note, log, [witness], 1, now=1790000000))
reader = FileSystemTileReader(str(LOG))
print("python:", audit_tiles(reader, head.size, head.root))
assert tree_root_from_tiles(reader, head.size) == head.root

entries = []
for n in range(-(-head.size // 256)):
    width = tile_width_at(head.size, 0, n)
    entries += parse_entry_bundle(reader.read_entry_bundle(n, width))
assert entries == [f"entry {at}".encode() for at in range(head.size)]
assert MerkleTree(entries).root() == head.root
print("python:", len(entries), "entries are those that were written, and make the signed root", base64.b64encode(head.root).decode())
ours = [base64.b64decode(line) for line in Path("consistency.txt").read_text().split()]
assert list(consistency_proof_from_tiles(reader, 65535, head.size)) == ours
print("python: consistency proof from our tiles equals ours")
