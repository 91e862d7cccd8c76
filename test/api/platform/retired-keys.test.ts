import { describe, expect, test } from "vitest";
import { parseConfig } from "../../../api/platform/config/config.ts";
import { KEY, STRANGER } from "../../packages/verifier/samples.ts";
import { completeEnvironment } from "../../support/service/environment.ts";

const SEED = Buffer.alloc(32, 7).toString("base64url");
const GOOD = completeEnvironment(SEED);

/** One line a problem. */
const problemsOf = (environment: Record<string, string>): readonly string[] => {
  const config = parseConfig({ ...GOOD, ...environment });
  return "problem" in config ? config.problem.split("\n") : [];
};

describe("RETIRED_SIGNING_KEYS", () => {
  test("is empty by default and otherwise the x of every key", () => {
    expect(parseConfig(GOOD)).toMatchObject({ retiredSigningKeys: [] });
    expect(parseConfig({ ...GOOD, RETIRED_SIGNING_KEYS: "" })).toMatchObject({ retiredSigningKeys: [] });
    const RETIRED_SIGNING_KEYS = `${KEY.publicJwk.x},${JSON.stringify(STRANGER.publicJwk)}`;
    expect(parseConfig({ ...GOOD, RETIRED_SIGNING_KEYS })).toMatchObject({
      retiredSigningKeys: [KEY.publicJwk.x, STRANGER.publicJwk.x],
    });
  });

  test("names every bad value on a line of its own", () => {
    expect(problemsOf({ RETIRED_SIGNING_KEYS: `short,${KEY.publicJwk.x},{"d":"secret"}` })).toEqual([
      expect.stringMatching(
        /^RETIRED_SIGNING_KEYS is wrong: value 1 is not a public key: expected x of an Ed25519 key/,
      ),
      expect.stringMatching(/^RETIRED_SIGNING_KEYS is wrong: value 3 holds a private key/),
    ]);
  });

  test("is never the private key itself, which would be published", () => {
    // A private key that is a point of the curve, so that nothing else gives it away.
    const seed = KEY.publicJwk.x;
    const problems = problemsOf({ SIGNING_KEY: seed, RETIRED_SIGNING_KEYS: seed });
    expect(problems).toEqual([
      expect.stringMatching(/^RETIRED_SIGNING_KEYS is wrong: .*SIGNING_KEY, which is private/),
    ]);
    expect(problems[0]).not.toContain(seed);
  });
});

describe("BASE_URL", () => {
  test.each(["http://127.0.0.1:4020", "http://[::1]:4020", "https://0x7f.1", "https://10.1"])(
    "%s is wrong: the issuer of documents has no IP address",
    (BASE_URL) => expect(problemsOf({ BASE_URL })).toEqual([expect.stringMatching(/^BASE_URL is wrong: .*host name/)]),
  );

  test.each(["https://trust.example", "http://localhost:4020", "https://1.example", "https://trust.example:8443"])(
    "%s is right",
    (BASE_URL) => expect(parseConfig({ ...GOOD, BASE_URL })).toMatchObject({ baseUrl: BASE_URL }),
  );
});
