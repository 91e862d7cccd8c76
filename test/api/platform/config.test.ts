import { generateKeyPairSync } from "node:crypto";
import { privateKeyToAddress } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { parseConfig } from "../../../api/platform/config/config.ts";
import { completeEnvironment } from "../../support/service/environment.ts";

const KEY = "A".repeat(43);
const GOOD = completeEnvironment(KEY);

const problemOf = (environment: Record<string, string | undefined>): string => {
  const config = parseConfig(environment);
  if (!("problem" in config)) throw new Error("the settings were accepted");
  return config.problem;
};

/** A seed followed by its public key. */
const CDP_SECRET = (() => {
  const { d = "", x = "" } = generateKeyPairSync("ed25519").privateKey.export({ format: "jwk" });
  return Buffer.concat([Buffer.from(d, "base64url"), Buffer.from(x, "base64url")]).toString("base64");
})();

describe("The API's settings", () => {
  test("Every missing variable is named with its expected value", () => {
    const problem = problemOf({});
    for (const name of [
      "DATABASE_URL",
      "BASE_RPC_URL",
      "BASE_SEPOLIA_RPC_URL",
      "PAY_TO_ADDRESS",
      "SIGNING_KEY",
      "SEALING_KEY",
      "DECOY_SEED",
      "ARBITER_PRIVATE_KEY",
    ]) {
      expect(problem).toMatch(new RegExp(`^${name} is missing: .{20,}`, "m"));
    }
    expect(problem).toMatch(/^Set exactly one of FACILITATOR_URL/m);
  });

  test("An empty variable counts as missing", () => {
    expect(problemOf({ ...GOOD, SIGNING_KEY: "" })).toMatch(/^SIGNING_KEY is missing: .*32 bytes/);
  });

  test.each([
    ["PORT", "70000", /whole number from 0 to 65535/],
    ["BASE_URL", "https://trust.example/", /no path, query, or trailing slash/],
    ["BASE_URL", "trust.example", /absolute http\(s\) URL/],
    ["DATABASE_URL", "mysql://x", /PostgreSQL URL/],
    [
      "BASE_RPC_URL",
      "https://base.example, ws://base.example",
      /JSON-RPC URL of a Base node .*, or of several, comma-separated/,
    ],
    ["BASE_RPC_URL", "https://base.example, https://base.example", /every node once/],
    ["PAY_TO_ADDRESS", "0x1234", /40 hex digits/],
    ["SIGNING_KEY", "short", /43 base64url characters/],
    ["SECURITY_CONTACT", "security@trust.example", /a URI for security reports/],
    ["LOG_LEVEL", "loud", /info/],
    ["TRUSTED_PROXIES", "10.0.0.0/33", /reverse proxies, comma-separated/],
    ["TRUSTED_PROXIES", "::1/129", /reverse proxies/],
    ["STOP_WITHIN_SECONDS", "0", /whole number from 1/],
    ["ESCROW_ADDRESSES", "0x1234", /escrow contracts and operators on Base, .*comma-separated/],
    ["ERC8004_FEEDBACK", "yes", /expected on or off/],
    ["ARBITER_PRIVATE_KEY", "0x12", /arbiter's private key: 0x and 64 hex digits/],
    ["ARBITER_ALLOWED_ORIGINS", "http://localhost:8080/", /exact origins/],
    ["GITHUB_API_URL", "api.github.com", /URL of GitHub's REST API/],
    ["INDEX_VIEWS_SCHEMA", "Live; drop", /schema name/],
  ])("%s=%s is refused with the expected value", (name, value, expected) => {
    const problem = problemOf({ ...GOOD, [name]: value });
    expect(problem).toMatch(new RegExp(`^${name} is wrong: `));
    expect(problem).toMatch(expected);
    expect(problem).not.toContain(KEY);
  });

  test("BASE_URL is required unless the service listens on the loopback interface", () => {
    const { HOST: _, ...open } = GOOD;
    for (const HOST of [undefined, "0.0.0.0", "::", "10.0.0.5", "trust.example"])
      expect(problemOf({ ...open, HOST })).toMatch(/^BASE_URL is missing: .*https:\/\/trust\.example.*HOST=localhost/);
    for (const HOST of ["localhost", "127.0.0.1", "127.0.0.2", "::1"])
      expect(parseConfig({ ...open, HOST })).toMatchObject({ baseUrl: "http://localhost:4020" });
    expect(parseConfig({ ...open, BASE_URL: "https://trust.example" })).toMatchObject({
      baseUrl: "https://trust.example",
      host: undefined,
    });
  });

  const ADDRESSES = [
    "PAY_TO_ADDRESS",
    "ESCROW_ADDRESSES",
    "EVALUATOR_ADDRESS",
    "OWN_ADDRESSES",
    "ERC6492_FACTORIES",
    "ERC8004_IDENTITY",
    "ERC8004_REPUTATION",
    "ERC8004_VALIDATION",
  ];

  test.each(ADDRESSES)("%s refuses a wrong checksum and the zero address", (name) => {
    // A checksummed address, and the same address with the case of one letter changed.
    const [right, mistyped] = [
      "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
      "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5D359",
    ];
    expect(problemOf({ ...GOOD, [name]: mistyped })).toMatch(new RegExp(`^${name} is wrong: the EIP-55 checksum of`));
    expect(problemOf({ ...GOOD, [name]: `0x${"0".repeat(40)}` })).toMatch(
      new RegExp(`^${name} is wrong: the zero address`),
    );
    for (const spelling of [right, right.toLowerCase(), `0x${right.slice(2).toUpperCase()}`])
      expect(parseConfig({ ...GOOD, [name]: spelling })).not.toHaveProperty("problem");
  });

  test.each([
    ["PAY_TO_ADDRESS", "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", /the USDC contract on Base/],
    ["PAY_TO_ADDRESS", "0x036CbD53842c5426634e7929541eC2318f3dCF7e", /the USDC contract on Base Sepolia/],
    ["ESCROW_ADDRESSES", `0x${"ab".repeat(20)},${GOOD.PAY_TO_ADDRESS}`, /one of ESCROW_ADDRESSES/],
    ["EVALUATOR_ADDRESS", GOOD.PAY_TO_ADDRESS, /EVALUATOR_ADDRESS/],
    ["PAY_TO_ADDRESS", privateKeyToAddress(GOOD.ARBITER_PRIVATE_KEY), /the address of ARBITER_PRIVATE_KEY/],
    ["PAY_TO_ADDRESS", privateKeyToAddress(GOOD.FACILITATOR_PRIVATE_KEY), /the address of FACILITATOR_PRIVATE_KEY/],
  ])(
    "The receiver is refused if %s=%s makes it a known contract or the address of a hot key",
    (name, value, expected) => {
      const problem = problemOf({ ...GOOD, [name]: value });
      expect(problem).toMatch(/^PAY_TO_ADDRESS is wrong: /);
      expect(problem).toMatch(expected);
    },
  );

  test.each([
    ["ARBITER_PRIVATE_KEY", "FACILITATOR_PRIVATE_KEY"],
    ["EXAM_PRIVATE_KEY", "ARBITER_PRIVATE_KEY"],
    ["LOG_KEY", "SIGNING_KEY"],
    ["SEALING_KEY", "SIGNING_KEY"],
    ["DECOY_SEED", "SEALING_KEY"],
  ] as const)("%s is refused if it is the same key as %s", (name, other) => {
    expect(problemOf({ ...GOOD, [name]: GOOD[other as keyof typeof GOOD] })).toMatch(
      new RegExp(`^${name} is wrong: the same key as ${other}`),
    );
  });

  test("The same key in two encodings is refused", () => {
    const bytes = Buffer.from(GOOD.ARBITER_PRIVATE_KEY.slice(2), "hex");
    const problem = problemOf({ ...GOOD, SEALING_KEY: bytes.toString("base64url") });
    expect(problem).toBe(
      "SEALING_KEY is wrong: the same key as ARBITER_PRIVATE_KEY; expected a key for this role alone.",
    );
  });

  test("A published service refuses well-known development keys", () => {
    const [anvil, ganache] = [
      "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
      "0x4f3edf983ac636a65a842ce7c78d9aa706d3b113bce9c46f30d7d21715b23b1d",
    ];
    const PUBLISHED = { ...GOOD, BASE_URL: "https://trust.example" };
    expect(parseConfig(PUBLISHED)).not.toHaveProperty("problem");
    for (const key of [anvil, ganache])
      for (const name of ["FACILITATOR_PRIVATE_KEY", "ARBITER_PRIVATE_KEY", "EXAM_PRIVATE_KEY"]) {
        const problem = problemOf({ ...PUBLISHED, [name]: key });
        expect(problem).toMatch(new RegExp(`^${name} is wrong: a development key`));
        expect(problem).not.toContain(key);
      }
    const sealing = Buffer.from(anvil.slice(2), "hex").toString("base64url");
    expect(problemOf({ ...PUBLISHED, SEALING_KEY: sealing })).toMatch(/^SEALING_KEY is wrong: a development key/);
    expect(problemOf({ ...PUBLISHED, PAY_TO_ADDRESS: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8" })).toMatch(
      /^PAY_TO_ADDRESS is wrong: its key is a development key/,
    );
    expect(
      parseConfig({ ...PUBLISHED, BASE_URL: "http://localhost:4020", ARBITER_PRIVATE_KEY: anvil }),
    ).not.toHaveProperty("problem");
  });

  test("A private key outside the curve's range is refused", () => {
    for (const key of [`0x${"00".repeat(32)}`, `0x${"ff".repeat(32)}`])
      for (const name of ["FACILITATOR_PRIVATE_KEY", "ARBITER_PRIVATE_KEY", "EXAM_PRIVATE_KEY"])
        expect(problemOf({ ...GOOD, [name]: key })).toMatch(new RegExp(`^${name} is wrong: expected .*private key`));
  });

  test("The cost of a settlement is limited unless the limit is turned off", () => {
    expect(parseConfig(GOOD)).toMatchObject({ costCeiling: { percent: 50, ethUsd: 3_000 } });
    const both = { SETTLEMENT_COST_PERCENT: "10", ETH_PRICE_USD: "4000" };
    expect(parseConfig({ ...GOOD, ...both })).toMatchObject({ costCeiling: { percent: 10, ethUsd: 4_000 } });
    expect(parseConfig({ ...GOOD, SETTLEMENT_COST_PERCENT: "0" })).toMatchObject({ costCeiling: null });
    expect(problemOf({ ...GOOD, SETTLEMENT_COST_PERCENT: "1001" })).toMatch(/a whole number from 0 to 1000/);
  });

  test("ERC-8004 feedback is off by default and uses the registries on Base when on", () => {
    expect(parseConfig(GOOD)).toMatchObject({ erc8004: null });
    expect(parseConfig({ ...GOOD, ERC8004_FEEDBACK: "on" })).toMatchObject({
      erc8004: {
        identity: "0x8004a169fb4a3325136eb29fa0ceb6d2e539a432",
        reputation: "0x8004baa17c55a88189ae136b182e5fda19de9b63",
        validation: null,
        gasPerDay: 20_000_000n,
      },
    });
  });

  test("By default the arbiter fetches only from public addresses and uses github.com's API", () => {
    expect(parseConfig(GOOD)).toMatchObject({
      arbiterAllowedOrigins: [],
      github: { apiUrl: "https://api.github.com", token: null },
    });
    const moved = {
      ...GOOD,
      ARBITER_ALLOWED_ORIGINS: "http://localhost:8080, https://shop.example",
      GITHUB_API_URL: "http://localhost:3000/api/v3/",
      GITHUB_TOKEN: "t",
    };
    expect(parseConfig(moved)).toMatchObject({
      arbiterAllowedOrigins: ["http://localhost:8080", "https://shop.example"],
      github: { apiUrl: "http://localhost:3000/api/v3", token: "t" },
    });
  });

  test("Proxies may be addresses or ranges, and metrics listen on the loopback interface by default", () => {
    const config = parseConfig({ ...GOOD, TRUSTED_PROXIES: "10.0.0.0/8, ::1", METRICS_PORT: "9464" });
    expect(config).toMatchObject({
      trustedProxies: ["10.0.0.0/8", "::1"],
      metrics: { port: 9464, host: "127.0.0.1" },
    });
    expect(parseConfig({ ...GOOD, METRICS_PORT: "9464", METRICS_HOST: "10.0.0.5" })).toMatchObject({
      metrics: { port: 9464, host: "10.0.0.5" },
    });
  });

  test("Exactly one facilitator is required", () => {
    const { FACILITATOR_PRIVATE_KEY: _, ...none } = GOOD;
    expect(problemOf(none)).toMatch(/exactly one of FACILITATOR_URL .* and FACILITATOR_PRIVATE_KEY/);
    expect(problemOf({ ...GOOD, FACILITATOR_URL: "https://facilitator.example" })).toMatch(/exactly one/);
    expect(parseConfig({ ...none, FACILITATOR_URL: "https://facilitator.example" })).toMatchObject({
      facilitator: { remote: "https://facilitator.example" },
    });
  });

  test.each<[string, object]>([
    ["Bearer t0ken", { type: "header", name: "authorization", value: "Bearer t0ken" }],
    ["Basic dTpw", { type: "header", name: "authorization", value: "Basic dTpw" }],
    ["X-API-Key: k3y", { type: "header", name: "x-api-key", value: "k3y" }],
    [`CDP ${"ab".repeat(16)} ${CDP_SECRET}`, { type: "cdp", keyId: "ab".repeat(16) }],
  ])("FACILITATOR_AUTH accepts %s", (text, auth) => {
    const { FACILITATOR_PRIVATE_KEY: _, ...none } = GOOD;
    const remote = { ...none, FACILITATOR_URL: "https://facilitator.example" };
    expect(parseConfig({ ...remote, FACILITATOR_AUTH: text })).toMatchObject({ facilitator: { auth } });
    expect(problemOf({ ...GOOD, FACILITATOR_AUTH: text })).toMatch(/set FACILITATOR_URL too/);
  });

  test.each(["s3cret", "Bearer two words", "X-Key: a\nX-Other: s3cret", "CDP id s3cret", "Digest s3cret"])(
    "FACILITATOR_AUTH refuses %j without repeating it",
    (text) => {
      const { FACILITATOR_PRIVATE_KEY: _, ...none } = GOOD;
      const problem = problemOf({ ...none, FACILITATOR_URL: "https://f.example", FACILITATOR_AUTH: text });
      expect(problem).toMatch(/^FACILITATOR_AUTH is wrong: expected "Bearer TOKEN"/m);
      expect(problem).not.toContain(text);
      expect(problem).not.toContain("s3cret");
    },
  );
});

describe("Telemetry settings", () => {
  const GOOD = completeEnvironment("A".repeat(43));
  const parsed = (env: Readonly<Record<string, string>>) => parseConfig({ ...GOOD, ...env });
  const AT = "http://127.0.0.1:4318";

  test("Telemetry is off by default and with OpenTelemetry's standard switches", () => {
    const off = { telemetry: null };
    expect(parsed({})).toMatchObject(off);
    expect(parsed({ OTEL_EXPORTER_OTLP_ENDPOINT: AT, OTEL_SDK_DISABLED: "true" })).toMatchObject(off);
    const none = { OTEL_TRACES_EXPORTER: "none", OTEL_METRICS_EXPORTER: "none" };
    expect(parsed({ OTEL_EXPORTER_OTLP_ENDPOINT: AT, ...none })).toMatchObject(off);
  });

  test.each([
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: AT }, { traces: true, metrics: true, sampled: 1, metricsEveryMs: 60_000 }],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${AT}/v1/traces` }, { traces: true, metrics: false }],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: AT, OTEL_TRACES_EXPORTER: "none" },
      { traces: false, metrics: true },
    ],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: AT, OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "0.1" },
      { sampled: 0.1 },
    ],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: AT, OTEL_TRACES_SAMPLER: "parentbased_always_off" }, { sampled: 0 }],
  ])("%j is parsed as the expected settings", (env, telemetry) => {
    expect(parsed(env)).toMatchObject({ telemetry });
  });

  test.each([
    [
      "OTEL_EXPORTER_OTLP_ENDPOINT",
      "collector:4317",
      /^OTEL_EXPORTER_OTLP_ENDPOINT is wrong: expected the URL of an OTLP/,
    ],
    ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", /^OTEL_EXPORTER_OTLP_PROTOCOL is wrong: expected http\/json/],
    ["OTEL_TRACES_EXPORTER", "zipkin", /^OTEL_TRACES_EXPORTER is wrong: expected otlp or none$/],
    ["OTEL_TRACES_SAMPLER_ARG", "2", /^OTEL_TRACES_SAMPLER_ARG is wrong: expected a number from 0 to 1$/],
  ])("%s=%s is refused in one line", (name, value, expected) => {
    expect(parsed({ [name]: value })).toMatchObject({ problem: expect.stringMatching(expected) });
  });
});
