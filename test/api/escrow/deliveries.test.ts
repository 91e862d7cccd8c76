import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import fc from "fast-check";
import { hashTypedData, zeroHash } from "viem";
import { describe, expect, test } from "vitest";
import { NO_TRANSACTIONS } from "../../../api/arbiter/evidence.ts";
import { gatherEvidence } from "../../../api/arbiter/gather-evidence.ts";
import { promisedBy } from "../../../api/escrow/contest/conditions.ts";
import { decodeContent, MAX_DECODED_BYTES } from "../../../api/escrow/decode-content.ts";
import { deliveryDigest, deliveryDomain, sha256 } from "../../../api/escrow/delivery.ts";
import { asDetails, digestOf, type EscrowContract } from "../../../api/payments/schemes/escrowed.ts";
import { NETWORKS } from "../../../api/platform/networks.ts";
import { authorizationOf } from "../../../packages/escrow/src/authorization.ts";
import { conditionsSha256 } from "../../../packages/escrow/src/contest-terms.ts";
import { DELIVERY_TYPES } from "../../../packages/escrow/src/delivery.ts";
import type * as kit from "../../../packages/escrow/src/payment-info.ts";
import { CLAIMS } from "../../support/arbiter/site.ts";
import { anyAddress, anyBytes32, anyTerms } from "../../support/escrow/any-terms.ts";

const CODINGS: Readonly<Record<string, (bytes: Uint8Array) => Buffer>> = {
  gzip: gzipSync,
  "x-gzip": gzipSync,
  deflate: deflateSync,
  br: brotliCompressSync,
  zstd: zstdCompressSync,
};
const NAMES = Object.keys(CODINGS);
const decode = (contentEncoding: string | null, body: Uint8Array) => decodeContent({ contentEncoding, body });
const code = (name: string, bytes: Uint8Array): Buffer => CODINGS[name]?.(bytes) ?? Buffer.alloc(0);

describe("content of a delivery", () => {
  test("Decoding restores the content from any coding or any two of them", async () => {
    const name = fc.constantFrom(...NAMES);
    const codings = fc.oneof(fc.tuple(name), fc.tuple(name, name));
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 2_000 }), codings, async (bytes, names) => {
        const body = names.reduce((content: Uint8Array, one) => code(one, content), bytes);
        const decoded = await decode(names.join(", ").toUpperCase(), body);
        expect(Buffer.from(decoded ?? []).equals(Buffer.from(bytes))).toBe(true);
        expect(decoded).not.toBeNull();
      }),
    );
  });

  test("A body without a coding, or an empty one, is its own content", async () => {
    const body = gzipSync("{}");
    expect(await decode(null, body)).toBe(body);
    expect(await decode("identity, ", body)).toBe(body);
    expect(await decode("gzip", new Uint8Array(0))).toHaveLength(0);
  });

  test("Raw deflate is accepted", async () => {
    expect((await decode("deflate", deflateRawSync("An old silent pond")))?.toString()).toBe("An old silent pond");
  });

  test.each(NAMES)("%s: 4 MiB are decoded, but one more byte or a bomb is null", async (name) => {
    expect(await decode(name, code(name, Buffer.alloc(MAX_DECODED_BYTES)))).toHaveLength(MAX_DECODED_BYTES);
    expect(await decode(name, code(name, Buffer.alloc(MAX_DECODED_BYTES + 1)))).toBeNull();
    const bomb = code(name, Buffer.alloc(64 * 1024 * 1024));
    expect(bomb.length).toBeLessThan(256 * 1024);
    expect(await decode(name, bomb)).toBeNull();
    expect(await decode(`${name}, gzip`, gzipSync(bomb))).toBeNull();
  });

  test.each(NAMES)("%s: a truncated or corrupt body is null", async (name) => {
    const body = code(name, Buffer.from(JSON.stringify(NAMES.join(" ").repeat(20))));
    expect(await decode(name, body.subarray(0, body.length - 6))).toBeNull();
    expect(await decode(name, Buffer.from("{}"))).toBeNull();
  });

  test.each(["compress", "gzip, gzip, gzip", "aes128gcm", "toString"])("The coding %s is null", async (coding) => {
    expect(await decode(coding, gzipSync(gzipSync(gzipSync("{}"))))).toBeNull();
  });
});

describe("conditions of an offer", () => {
  const body = Buffer.from("An old silent pond");
  const promised = (status: number, conditions: Record<string, unknown>) => {
    const delivered = {
      contest: null,
      status,
      contentType: "text/plain",
      contentEncoding: null,
      body,
      content: body,
    } as const;
    const read = promisedBy(CLAIMS, conditions, delivered);
    if ("wrong" in read) throw new Error(JSON.stringify(read.wrong));
    return read;
  };

  test("A delivered response is judged by version 1 of the policy, and a URL by the version in force", () => {
    const { expect: own, httpDelivery } = promised(200, {
      expect: { min_bytes: 1 },
      "http-delivery": { url: "https://shop.example/" },
    });
    expect([own?.claim.policyVersion, httpDelivery?.policyVersion]).toEqual([1, 2]);
  });

  test.each([202, 405])("A false result about a delivered %i takes one attempt without a wait", async (status) => {
    const { expect: own } = promised(status, { expect: { expect_status: status, expect_contains: "frog" } });
    if (own === null) throw new Error("no conditions on the response");
    const unasked = () => Promise.reject(new Error("unexpected call"));
    let looks = 0;
    const fetcher = {
      attempt: async () => {
        looks += 1;
        return own.seen;
      },
    };
    const checkRuns = { read: unasked, suites: unasked, statuses: unasked };
    const parts = { ...CLAIMS, fetcher, checkRuns, transactions: NO_TRANSACTIONS, wait: unasked };
    expect((await gatherEvidence(parts, own.claim, new AbortController().signal)).verdict).toBe("refund");
    expect(looks).toBe(1);
  });
});

describe("hashes", () => {
  const network = "eip155:8453";
  const { chainId, usdc } = NETWORKS[network];

  test("The digest of a hold's authorization is the one that its payer signs", () => {
    const check = (info: kit.PaymentInfo, custody: `0x${string}`, collector: `0x${string}`) => {
      const contract = { scheme: "commerce", address: info.operator, custody, collector } as EscrowContract;
      const ours = { ...info, token: usdc.address };
      const digest = digestOf([contract], "commerce")({ details: asDetails(ours) } as never, network);
      expect(digest).toBe(hashTypedData(authorizationOf({ chainId, custody, collector, usdc }, ours)));
    };
    fc.assert(fc.property(anyTerms, anyAddress, anyAddress, check));
  });

  describe("digest of a delivery", () => {
    const header = fc.option(fc.string({ unit: "grapheme" }));
    const deliveries = fc.record({
      status: fc.nat(599),
      contentType: header,
      contentEncoding: header,
      body: fc.uint8Array({ maxLength: 100 }),
    });
    const terms = fc.record({
      seconds: fc.nat(1200),
      conditions: fc.dictionary(fc.string(), fc.jsonValue()),
      saltNonce: fc.constant(0n),
    });
    const payments = fc.record({ id: anyBytes32, contract: anyAddress });

    test.each(["with", "without"])("The digest %s a window is the EIP-712 hash", (window) => {
      fc.assert(
        fc.property(payments, deliveries, terms, ({ id, contract }, given, contest) => {
          const delivery = { ...given, contest: window === "with" ? contest : null };
          const message = {
            paymentId: id,
            status: given.status,
            bodySha256: sha256(given.body),
            contentType: given.contentType ?? "",
            contentEncoding: given.contentEncoding ?? "",
            contestSeconds: delivery.contest?.seconds ?? 0,
            conditionsSha256: delivery.contest === null ? zeroHash : conditionsSha256(contest.conditions),
          };
          const domain = deliveryDomain(NETWORKS[network], contract);
          const expected = hashTypedData({ domain, ...DELIVERY_TYPES, message } as never);
          expect(deliveryDigest({ network, contract, id }, delivery)).toBe(expected);
        }),
      );
    });
  });
});
