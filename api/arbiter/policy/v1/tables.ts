import type { FetchLimits } from "../../../platform/web/guarded-fetch/request.ts";
import type { ConditionResult, PolicyCategory, Verdict } from "../policy.ts";

export const MAX_ATTEMPTS_V1 = 2;

export const FETCH_LIMITS_V1: FetchLimits = {
  deadlineMs: 8_000,
  maxRedirects: 3,
  maxBodyBytes: 10 * 1024 * 1024,
  maxCodings: 2,
};

/** Statuses that mean "not now" or "not you": they do not prove delivery or its absence. */
export const UNDECIDED_STATUSES_V1: readonly number[] = [401, 402, 403, 407, 408, 425, 429, 451];

/** Conclusions of a completed check run that count as good. All others are bad. */
export const GOOD_CONCLUSIONS_V1: readonly string[] = ["success", "neutral", "skipped"];

export const HTTP_DELIVERY_V1: PolicyCategory = {
  name: "http-delivery",
  summary:
    "The arbiter fetches the URL itself: two attempts at most, 8 seconds each, three redirects, 10 MiB. The first attempt that leads to release or refund decides; the second is made only when the first led to neither.",
  conditions: [
    { name: "url", required: true, means: "a public http or https URL on port 80 or 443, without credentials" },
    {
      name: "expect_status",
      required: false,
      means: "the HTTP status of the last response, 200 to 599; any 2xx when not given",
    },
    { name: "expect_sha256", required: false, means: "SHA-256 of the body, as received or as decoded" },
    { name: "min_bytes", required: false, means: "the least length of the decoded body in bytes" },
    {
      name: "expect_contains",
      required: false,
      means: "a text that the decoded body contains, byte for byte in UTF-8",
    },
  ],
  table: [
    { condition: "status", observed: "The status is the expected one and the body arrived whole.", result: "true" },
    { condition: "status", observed: "Another status from 200 to 299.", result: "false" },
    {
      condition: "status",
      observed: "Another status of 400 or more, 404 and 410 among them, that no row below names.",
      result: "false",
    },
    { condition: "status", observed: `Not expected: ${UNDECIDED_STATUSES_V1.join(", ")}.`, result: "unknown" },
    { condition: "status", observed: "Not expected: 500 to 599.", result: "unknown" },
    { condition: "status", observed: "A status outside 200 to 599.", result: "unknown" },
    {
      condition: "status",
      observed:
        "Not expected: 300 to 399, without a target that can be followed: none, unusable, a fourth one, or from https to http.",
      result: "unknown",
    },
    {
      condition: "status",
      observed:
        "No whole response: DNS, refused, unreachable, TLS, timeout, connection reset, no HTTP, body broken off, body too large.",
      result: "unknown",
    },
    {
      condition: "status",
      observed: "The name or a redirect leads to an address that is not public, or to the service itself.",
      result: "unknown",
    },
    { condition: "expect_sha256", observed: "The body as received, or as decoded, has the hash.", result: "true" },
    { condition: "expect_sha256", observed: "Neither has it.", result: "false" },
    { condition: "min_bytes", observed: "The decoded body has as many bytes or more.", result: "true" },
    { condition: "min_bytes", observed: "It has fewer.", result: "false" },
    { condition: "expect_contains", observed: "The decoded body contains the text.", result: "true" },
    { condition: "expect_contains", observed: "It does not.", result: "false" },
    {
      condition: "expect_sha256, min_bytes, expect_contains",
      observed: "The status is not true, so the body is not read.",
      result: "unknown",
    },
    {
      condition: "expect_sha256, min_bytes, expect_contains",
      observed:
        "The body cannot be decoded: a coding other than gzip, deflate and br, more than two codings, or corrupt data. (A matching hash of the body as received is true all the same.)",
      result: "unknown",
    },
  ],
};

export const PAYLOAD_HASH_V1: PolicyCategory = {
  name: "payload-hash",
  summary:
    "The arbiter computes the SHA-256 of the payload and compares it. It always decides; the payload is not kept.",
  conditions: [
    { name: "payload_text", required: false, means: "the payload as text, hashed as UTF-8; exactly one payload field" },
    { name: "payload_b64", required: false, means: "the payload in base64 (RFC 4648, section 4, padded)" },
    { name: "expected_sha256", required: true, means: "SHA-256 that the payload is to have" },
  ],
  table: [
    { condition: "expected_sha256", observed: "The payload has the hash.", result: "true" },
    { condition: "expected_sha256", observed: "It has another one.", result: "false" },
  ],
};

export const CI_STATUS_V1: PolicyCategory = {
  name: "ci-status",
  summary: "The arbiter reads GitHub's public check-runs of one commit: the newest run of every check, all pages.",
  conditions: [
    { name: "repo", required: true, means: "a public repository, owner/name" },
    { name: "commit_sha", required: true, means: "the whole commit hash, 40 or 64 hex digits" },
  ],
  table: [
    {
      condition: "check_runs",
      observed: `Every run is completed, with one of ${GOOD_CONCLUSIONS_V1.join(", ")}.`,
      result: "true",
    },
    {
      condition: "check_runs",
      observed: "A completed run has any other conclusion, whatever the others have.",
      result: "false",
    },
    { condition: "check_runs", observed: "No bad conclusion, and a run is not completed.", result: "unknown" },
    { condition: "check_runs", observed: "There is no run.", result: "unknown" },
    { condition: "check_runs", observed: "A run belongs to another commit.", result: "unknown" },
    { condition: "check_runs", observed: "No bad conclusion, and not every run was shown.", result: "unknown" },
    {
      condition: "check_runs",
      observed: "Repository or commit not found (404, 422), rate limit, no access, no answer, or an unusable one.",
      result: "unknown",
    },
  ],
};

/** Decides release if all are true, refund if any is false, and escalate otherwise (policy, `decision`). */
export function decide(results: readonly ConditionResult[]): Verdict {
  if (results.includes("false")) return "refund";
  return results.length > 0 && results.every((result) => result === "true") ? "release" : "escalate";
}
