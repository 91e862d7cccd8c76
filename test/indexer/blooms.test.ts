import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import fc from "fast-check";
import { hexToBytes, hexToNumber, keccak256 } from "viem";
import { expect, test } from "vitest";
import * as remembered from "../../indexer/bloom-hashes.ts";
import { ponderPackage } from "../../indexer/deployment.ts";
import { anyAddress, anyBytes32 } from "../support/escrow/any-terms.ts";
import { bareEnvironment } from "../support/service/environment.ts";

test("what is remembered is what viem says, asked in any order, again and again", () => {
  const anyFilter = fc
    .uint8Array({ minLength: 256, maxLength: 256 })
    .map((bytes) => `0x${Buffer.from(bytes).toString("hex")}` as const);
  const asked = fc.array(fc.oneof(anyAddress, anyBytes32, anyFilter), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(asked, (all) => {
      for (const hex of [...all, ...all]) {
        expect(remembered.keccak256(hex)).toBe(keccak256(hex));
        expect([...remembered.hexToBytes(hex)]).toEqual([...hexToBytes(hex)]);
      }
    }),
  );
  fc.assert(
    fc.property(fc.maxSafeNat(), (number) => {
      const hex = `0x${number.toString(16)}` as const;
      expect(remembered.hexToNumber(hex)).toBe(hexToNumber(hex));
    }),
  );
});

const file = (path: string) => JSON.stringify(pathToFileURL(path).href);

/** Asks Ponder's own module, loaded as the indexer loads it, and counts what it takes from where. */
const PROGRAM = `
  import { registerHooks } from "node:module";
  import { rememberHashes } from ${file("indexer/blooms.ts")};
  const loaded = [];
  registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
  rememberHashes();
  const { isInBloom } = await import(${file(join(dirname(ponderPackage()), "dist/esm/sync-realtime/bloom.js"))});
  const { bloom, inside, others } = JSON.parse(process.argv[1]);
  const says = (all) => all.map((input) => isInBloom(bloom, input));
  console.log(JSON.stringify({ inside: says(inside), others: says(others), loaded: loaded.filter((url) => url.includes("bloom-hashes")).length }));
`;

test("Ponder asks what remembers, and finds in a filter what is in it", async () => {
  const [inside, others] = [fc.sample(anyAddress, 20), fc.sample(anyBytes32, 50)];
  const bits = new Uint8Array(256);
  const placesOf = (input: `0x${string}`) => {
    const hash = hexToBytes(keccak256(input));
    return [0, 2, 4].map((at) => (((hash[at] ?? 0) << 8) + (hash[at + 1] ?? 0)) & 0x7ff);
  };
  const byte = (place: number) => 255 - (place >> 3);
  for (const place of inside.flatMap(placesOf)) bits[byte(place)] = (bits[byte(place)] ?? 0) | (1 << (place & 7));
  const isThere = (input: `0x${string}`) =>
    placesOf(input).every((place) => ((bits[byte(place)] ?? 0) >> (place & 7)) & 1);
  const given = JSON.stringify({ bloom: `0x${Buffer.from(bits).toString("hex")}`, inside, others });
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", PROGRAM, given], {
    env: bareEnvironment(),
  });
  expect(JSON.parse(stdout)).toEqual({
    inside: inside.map(() => true),
    others: others.map((one) => Boolean(isThere(one))),
    loaded: 1,
  });
});
