from pathlib import Path
from aics_tlog import *
import base64
note=parse_note(Path("files/checkpoint").read_text())
c=parse_checkpoint(note.text)
log=parse_vkey(Path("vkey.txt").read_text()); w=parse_vkey(Path("wkey.txt").read_text())
print("python: checkpoint:", verify_checkpoint(note, log, [w], 1, now=1790000000))
r=FileSystemTileReader("files")
print("python:", audit_tiles(r, c.size, c.root))
ours=[base64.b64decode(l) for l in Path("consistency.txt").read_text().split()]
assert list(consistency_proof_from_tiles(r,65535,c.size))==ours
print("python: consistency proof from our tiles equals ours")
