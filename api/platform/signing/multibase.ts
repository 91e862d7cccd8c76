const ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/** As many digits as fit a safe integer, to keep divisions of large numbers few. */
const CHUNK = 9;
const CHUNK_BASE = 58n ** BigInt(CHUNK);

/** Multibase text in base58btc, which begins with `z`: the form of `proofValue` and `publicKeyMultibase`. */
export function multibase(bytes: Uint8Array): string {
  let digits = "";
  for (let rest = BigInt(`0x0${Buffer.from(bytes).toString("hex")}`); rest > 0n; rest /= CHUNK_BASE) {
    let chunk = Number(rest % CHUNK_BASE);
    for (let n = 0; n < CHUNK; n++, chunk = Math.floor(chunk / 58)) digits = ALPHABET[chunk % 58] + digits;
  }
  const leadingZeros = bytes.findIndex((byte) => byte !== 0);
  return `z${"1".repeat(leadingZeros === -1 ? bytes.length : leadingZeros)}${digits.replace(/^1+/, "")}`;
}
