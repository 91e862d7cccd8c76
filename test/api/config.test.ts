import { describe, expect, test } from "vitest";
import { parseConfig } from "../../api/config.ts";
import { completeEnvironment } from "../support/service/environment.ts";

const KEY = "A".repeat(43);
const GOOD = completeEnvironment(KEY);

const problemOf = (environment: Record<string, string | undefined>): string => {
  const config = parseConfig(environment);
  if (!("problem" in config)) throw new Error("the settings were accepted");
  return config.problem;
};

describe("the API's settings", () => {
  test("have sensible defaults", () => {
    expect(parseConfig(GOOD)).toMatchObject({
      port: 4020,
      host: undefined,
      baseUrl: "http://localhost:4020",
      payTo: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
      facilitator: { privateKey: GOOD.FACILITATOR_PRIVATE_KEY },
      logBlockRange: 9_000,
      indexViewsSchema: "live",
      rateLimitPerMinute: 1200,
      trustedProxies: [],
      metrics: null,
      stopWithinSeconds: 25,
      securityContact: "mailto:security@localhost",
      logLevel: "info",
    });
  });

  test("name every variable that is missing, each with what is expected", () => {
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

  test("take a ceiling of what settlements cost as a whole, or none", () => {
    expect(parseConfig(GOOD)).toMatchObject({ costCeiling: null });
    const both = { SETTLEMENT_COST_PERCENT: "10", ETH_PRICE_USD: "3000" };
    expect(parseConfig({ ...GOOD, ...both })).toMatchObject({ costCeiling: { percent: 10, ethUsd: 3_000 } });
    for (const one of Object.entries(both))
      expect(problemOf({ ...GOOD, ...Object.fromEntries([one]) })).toMatch(/^Set both of SETTLEMENT_COST_PERCENT/);
  });

  test("count an empty variable as missing", () => {
    expect(problemOf({ ...GOOD, SIGNING_KEY: "" })).toMatch(/^SIGNING_KEY is missing: .*32 bytes/);
  });

  test.each([
    ["PORT", "70000", /whole number from 0 to 65535/],
    ["PORT", "4o20", /whole number/],
    ["BASE_URL", "https://trust.example/", /no path, query, or trailing slash/],
    ["BASE_URL", "trust.example", /absolute http\(s\) URL/],
    ["DATABASE_URL", "mysql://x", /PostgreSQL URL/],
    ["BASE_RPC_URL", "ws://base.example", /JSON-RPC URL of a Base node/],
    ["PAY_TO_ADDRESS", "0x1234", /40 hex digits/],
    ["FACILITATOR_PRIVATE_KEY", "0x12", /64 hex digits/],
    ["SIGNING_KEY", "short", /43 base64url characters/],
    ["RATE_LIMIT_PER_MINUTE", "-1", /whole number/],
    ["SECURITY_CONTACT", "security@trust.example", /a URI for security reports/],
    ["LOG_LEVEL", "loud", /info/],
    ["TRUSTED_PROXIES", "10.0.0.0/33", /reverse proxies, comma-separated/],
    ["TRUSTED_PROXIES", "::1/129", /reverse proxies/],
    ["TRUSTED_PROXIES", "proxy.internal", /reverse proxies/],
    ["TRUSTED_PROXIES", "10.0.0.1,", /reverse proxies/],
    ["METRICS_PORT", "x", /whole number from 0 to 65535/],
    ["STOP_WITHIN_SECONDS", "0", /whole number from 1/],
    ["ESCROW_ADDRESSES", "0x1234", /escrow contracts and operators on Base, comma-separated/],
    ["ERC6492_FACTORIES", "0x1234", /factories of smart wallets on Base, comma-separated/],
    ["ESCROW_ADDRESSES", `${GOOD.PAY_TO_ADDRESS},`, /escrow contracts and operators on Base, comma-separated/],
    ["ERC8004_FEEDBACK", "yes", /expected on or off/],
    ["ERC8004_REPUTATION", "0x12", /ERC-8004's registry of feedback on Base: 0x and 40 hex digits/],
    ["ERC8004_DAILY_GAS", "lots", /whole number/],
    ["ARBITER_PRIVATE_KEY", "0x12", /arbiter's private key: 0x and 64 hex digits/],
    ["ARBITER_ALLOWED_ORIGINS", "http://localhost:8080/", /exact origins/],
    ["GITHUB_API_URL", "api.github.com", /URL of GitHub's REST API/],
    ["INDEX_VIEWS_SCHEMA", "Live; drop", /schema name/],
  ])("name %s=%s as wrong, with what is expected", (name, value, expected) => {
    const problem = problemOf({ ...GOOD, [name]: value });
    expect(problem).toMatch(new RegExp(`^${name} is wrong: `));
    expect(problem).toMatch(expected);
    expect(problem).not.toContain(KEY);
  });

  test("publish nothing to ERC-8004's registries unless that is on, and then to those on Base", () => {
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

  test("accept proxies as addresses and ranges, and put metrics on the loopback unless another address is named", () => {
    const config = parseConfig({ ...GOOD, TRUSTED_PROXIES: "10.0.0.0/8, ::1", METRICS_PORT: "9464" });
    expect(config).toMatchObject({
      trustedProxies: ["10.0.0.0/8", "::1"],
      metrics: { port: 9464, host: "127.0.0.1" },
    });
    expect(parseConfig({ ...GOOD, METRICS_PORT: "9464", METRICS_HOST: "10.0.0.5" })).toMatchObject({
      metrics: { port: 9464, host: "10.0.0.5" },
    });
  });

  test("require exactly one facilitator", () => {
    const { FACILITATOR_PRIVATE_KEY: _, ...none } = GOOD;
    expect(problemOf(none)).toMatch(/exactly one of FACILITATOR_URL .* and FACILITATOR_PRIVATE_KEY/);
    expect(problemOf({ ...GOOD, FACILITATOR_URL: "https://facilitator.example" })).toMatch(/exactly one/);
    expect(parseConfig({ ...none, FACILITATOR_URL: "https://facilitator.example" })).toMatchObject({
      facilitator: { remote: "https://facilitator.example" },
    });
  });

  test("have no escrow contract by default, and the current one comes first", () => {
    const addresses = [GOOD.PAY_TO_ADDRESS, `0x${"AB".repeat(20)}`];
    expect(parseConfig(GOOD)).toMatchObject({ escrowAddresses: [] });
    expect(parseConfig({ ...GOOD, ESCROW_ADDRESSES: addresses.join(", ") })).toMatchObject({
      escrowAddresses: addresses.map((address) => address.toLowerCase()),
    });
  });

  test("let the arbiter fetch from public addresses only, and ask GitHub itself", () => {
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
});
