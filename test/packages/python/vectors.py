"""Checks every vector of the repository twice: with the package, and with libraries that know nothing of it.

Prints one JSON line per vector: its file, its name, and whether the package and the foreign code accept it and whether
both refuse it once it is changed.
"""

import copy
import hashlib
import json
import struct
import sys
from datetime import datetime, timezone
from pathlib import Path

import rfc8785
from jwcrypto import jwk, jws

from agent_payment_trust import claim_sha256, parse_key_set, parse_policy, verify_document
from agent_payment_trust.encodings import from_base58, from_base64url, to_base64url
from agent_payment_trust.errors import Refusal
from agent_payment_trust.proof import DetachedJws, Proof, jws_holds, proof_value_holds
from agent_payment_trust.strict_json import jcs, parse_unsigned_json
from agent_payment_trust.tlog.policy import verify_checkpoint

VECTORS, ML_DSA = Path(sys.argv[1]), Path(sys.argv[2])
JWKS = (VECTORS / "jwks.json").read_text()
KEYS = parse_key_set(JWKS)
FOREIGN_KEYS = jwk.JWKSet.from_json(JWKS)
AT = datetime(2026, 11, 26, tzinfo=timezone.utc)


def read(name):
    return json.loads((VECTORS / name).read_text())


def report(file, name, own, foreign):
    print(json.dumps({"file": file, "name": name, "own": own, "foreign": foreign}))


def double(bits):
    return struct.unpack(">d", bytes.fromhex(bits))[0]


def refuses(canonicalize, value):
    try:
        canonicalize(value)
    except Exception:
        return True
    return False


def canonicalization():
    vectors = read("rfc8785.json")
    for example in vectors["examples"]:
        wanted = bytes.fromhex(example["utf8Hex"])
        own = jcs(parse_unsigned_json(example["input"])) == wanted
        report("rfc8785.json", example["name"], own, rfc8785.dumps(json.loads(example["input"])) == wanted)
    in_order = [list(json.loads(f(json.loads(vectors["sorting"]["input"]))).values()) for f in (jcs, rfc8785.dumps)]
    report("rfc8785.json", "sorting", *(values == vectors["sorting"]["values"] for values in in_order))
    for number in vectors["numbers"]:
        value = double(number["ieee754"])
        report("rfc8785.json", number["json"], *(f(value).decode() == number["json"] for f in (jcs, rfc8785.dumps)))
    for bits in vectors["refusedNumbers"]:
        report("rfc8785.json", bits, *(refuses(f, double(bits)) for f in (jcs, rfc8785.dumps)))


def jose_holds(token, payload, key):
    """Returns whether jwcrypto accepts a JWS with a detached payload."""
    header, _, signature = token.split(".")
    signed = jws.JWS()
    signed.deserialize(f"{header}.{to_base64url(payload)}.{signature}")
    try:
        signed.verify(key)
    except jws.InvalidJWSSignature:
        return False
    return True


def jose():
    vector = read("rfc8037.json")
    header, payload, signature = vector["jws"].split(".")
    public = {name: vector["privateJwk"][name] for name in ("kty", "crv", "x")}
    text = from_base64url(payload)
    keys = parse_key_set(json.dumps({"keys": [{**public, "kid": vector["thumbprint"]}]}))
    own = jws_holds(DetachedJws(header, from_base64url(signature)), text, keys[vector["thumbprint"]])
    foreign = jwk.JWK(**public)
    report("rfc8037.json", "A.5", own, jose_holds(vector["jws"], text, foreign))
    report("rfc8037.json", "A.3", True, foreign.thumbprint() == vector["thumbprint"])
    changed = jws_holds(DetachedJws(header, from_base64url(signature)), text + b".", keys[vector["thumbprint"]])
    report("rfc8037.json", "changed", not changed, not jose_holds(vector["jws"], text + b".", foreign))


def raw_holds(key, signature, data):
    """Returns whether jwcrypto's Ed25519 accepts a signature outside of JOSE."""
    try:
        key.get_op_key("verify").verify(signature, data)
    except Exception:
        return False
    return True


def data_integrity():
    vector = read("eddsa-jcs-2022.json")
    public = from_base58(vector["keyPair"]["publicKeyMultibase"][1:], 34)[2:]
    value = from_base58(vector["proofValue"][1:], 64)
    options, document = vector["proofOptions"], vector["unsigned"]
    key = {"kty": "OKP", "crv": "Ed25519", "x": to_base64url(public), "kid": "1"}
    own_key = parse_key_set(json.dumps({"keys": [key]}))["1"]
    proof = Proof(None, "1", options["created"], "", value, options)
    hashes = [hashlib.sha256(rfc8785.dumps(one)) for one in (options, document)]
    combined = b"".join(one.digest() for one in hashes)
    foreign = combined.hex() == vector["combinedHash"] and raw_holds(jwk.JWK(**key), value, combined)
    report("eddsa-jcs-2022.json", "signed", proof_value_holds(proof, jcs(document), own_key), foreign)
    changed = {**document, "name": "another"}
    other = hashes[0].digest() + hashlib.sha256(rfc8785.dumps(changed)).digest()
    report(
        "eddsa-jcs-2022.json",
        "changed",
        not proof_value_holds(proof, jcs(changed), own_key),
        not raw_holds(jwk.JWK(**key), value, other),
    )


def foreign_accepts(text):
    """Returns whether jwcrypto and rfc8785 accept each of a document's two signatures."""
    document = json.loads(text)
    proof = document.pop("proof")
    key = FOREIGN_KEYS.get_key(proof["verificationMethod"].split("#")[1])
    canonical = rfc8785.dumps(document)
    value = from_base58(proof["proofValue"][1:], 64)
    options = {name: one for name, one in proof.items() if name != "proofValue"}
    data = hashlib.sha256(rfc8785.dumps(options)).digest() + hashlib.sha256(canonical).digest()
    return jose_holds(proof["jws"], canonical, key), raw_holds(key, value, data)


def own_accepts(text):
    return verify_document(text, KEYS, issuer="did:web:trust.example", at=AT).valid


def documents():
    credential = (VECTORS / "credential.json").read_text()
    verdicts = read("verdicts-v1.json")["verdicts"]
    for file, name, text in [
        ("credential.json", "golden", credential),
        *(("verdicts-v1.json", one["id"], one["document"]) for one in verdicts),
    ]:
        report(file, name, own_accepts(text), all(foreign_accepts(text)))
        changed = json.loads(text)
        changed["id"] = "another"
        refused = not own_accepts(json.dumps(changed)), not any(foreign_accepts(json.dumps(changed)))
        report(file, f"{name}, changed", *refused)
        # Only one signature is replaced, and the other must stay valid.
        swapped = copy.deepcopy(json.loads(text))
        swapped["proof"]["proofValue"] = "z" + "1" * 64
        report(file, f"{name}, zero proofValue", not own_accepts(json.dumps(swapped)), foreign_accepts(json.dumps(swapped)) == (True, False))
    for one in verdicts:
        claim = one["claim"]
        wanted = json.loads(one["document"])["conditions_sha256"]
        conditions = {name: claim[name] for name in ("category", "conditions")}
        foreign = hashlib.sha256(rfc8785.dumps(conditions)).hexdigest() == wanted
        report("verdicts-v1.json", f"{one['id']}, conditions", claim_sha256(json.dumps(claim)) == wanted, foreign)


def scores():
    for record in read("scores.json")["records"]:
        wanted = record["inputs_sha256"]
        hashes = [hashlib.sha256(f(record["inputs"])).hexdigest() for f in (jcs, rfc8785.dumps)]
        report("scores.json", record["wallet"], *(one == wanted for one in hashes))


def cosignatures():
    """Checks only with our code, because jwcrypto has no ML-DSA-44. The vector is from another party."""
    policy, _, note = ML_DSA.read_text().partition("---\n")
    trusted = parse_policy(policy)
    report("ml-dsa-44.txt", "cosigned", list(verify_checkpoint(note, trusted).witnesses) == ["pq"], None)
    lines = note.split("\n")
    lines[1] = str(int(lines[1]) + 1)
    try:
        verify_checkpoint("\n".join(lines), trusted)
        refused = False
    except Refusal as refusal:
        refused = refusal.code == "note_signature_mismatch"
    report("ml-dsa-44.txt", "changed", refused, None)


canonicalization()
jose()
data_integrity()
documents()
scores()
cosignatures()
