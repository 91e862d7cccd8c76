import fc from "fast-check";
import { toHex, keccak256 as viems } from "viem";
import { expect, test } from "vitest";
import { keccak256 } from "../../../api/platform/chain/typed-data.ts";

test("the hash of any bytes is viem's, in bytes or in hex", () =>
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 500 }), (bytes) => {
      expect(keccak256(bytes)).toBe(viems(bytes));
      expect(keccak256(toHex(bytes))).toBe(viems(bytes));
    }),
  ));

test.each([0, 135, 136, 137, 16_384, 16_385, 100_000])("so is that of %i bytes", (length) => {
  const bytes = new Uint8Array(length).map((_, at) => at);
  expect(keccak256(bytes)).toBe(viems(bytes));
});
