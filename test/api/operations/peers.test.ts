import type { IncomingMessage } from "node:http";
import { describe, expect, test } from "vitest";
import { createPeers } from "../../../api/platform/http/peers.ts";

const TRUSTED = ["10.0.0.0/8", "127.0.0.1", "2001:db8:ffff::/48"];
const from = (remoteAddress: string, headers: IncomingMessage["headers"] = {}) =>
  ({ socket: { remoteAddress }, headers }) as IncomingMessage;
const via = (remoteAddress: string, forwarded: string) => from(remoteAddress, { "x-forwarded-for": forwarded });
const by = (forwarded: string, listed?: string) =>
  from("10.1.2.3", { forwarded, ...(listed === undefined ? {} : { "x-forwarded-for": listed }) });

describe("the client that a request is counted against", () => {
  test.each([
    ["the socket's address", from("203.0.113.7"), "203.0.113.7"],
    ["an IPv4 address over an IPv6 socket", from("::ffff:203.0.113.7"), "203.0.113.7"],
    ["of an IPv6 address its /64", from("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64"],
    ["of a shortened one too", from("2001:db8::6"), "2001:db8:0:0::/64"],
    ["however its zeros are written", from("2001:0db8:0::0006"), "2001:db8:0:0::/64"],
    ["the one that a trusted proxy names", via("10.1.2.3", "203.0.113.7"), "203.0.113.7"],
    ["the one that it names over an IPv6 socket", via("::ffff:127.0.0.1", "203.0.113.7"), "203.0.113.7"],
    ["the last stranger on the way through two of them", via("10.1.2.3", "203.0.113.7, 10.9.9.9"), "203.0.113.7"],
    ["not what the client says of itself", via("10.1.2.3", "198.51.100.1, 203.0.113.7"), "203.0.113.7"],
    ["the proxy when it names nobody", from("10.1.2.3"), "10.1.2.3"],
    ["the last known one before nonsense", via("10.1.2.3", "nonsense, 10.9.9.9"), "10.9.9.9"],
    ["a stranger, whatever it says", via("203.0.113.7", "198.51.100.1"), "203.0.113.7"],
    ["an IPv6 stranger behind an IPv6 proxy", via("2001:db8:ffff::1", "2001:db8:5:6::1"), "2001:db8:5:6::/64"],
    ["an address with its port", via("10.1.2.3", "203.0.113.7:49152"), "203.0.113.7"],
    ["through two proxies with ports", via("10.1.2.3", "203.0.113.7:49152, 10.9.9.9:80"), "203.0.113.7"],
    ["an IPv6 address in brackets", via("10.1.2.3", "[2001:db8:5:6::1]"), "2001:db8:5:6::/64"],
    ["an IPv6 address in brackets with its port", via("10.1.2.3", "[2001:db8:5:6::1]:443"), "2001:db8:5:6::/64"],
    ["an IPv4 address as IPv6 writes it", via("10.1.2.3", "[::ffff:203.0.113.7]:443"), "203.0.113.7"],
    ["the proxy when the port is none", via("10.1.2.3", "203.0.113.7:http"), "10.1.2.3"],
    ["the proxy when the brackets hold no address", via("10.1.2.3", "[203.0.113.7.9]"), "10.1.2.3"],
    ["what Forwarded names", by("for=203.0.113.7"), "203.0.113.7"],
    ["what Forwarded names among others", by("proto=https; For=203.0.113.7 ;by=10.1.2.3"), "203.0.113.7"],
    ["a quoted IPv6 address with a port", by('for="[2001:db8:5:6::1]:4711"'), "2001:db8:5:6::/64"],
    ["a quoted IPv4 address with a hidden port", by('for="203.0.113.7:_x1"'), "203.0.113.7"],
    ["the last stranger in Forwarded", by('for=198.51.100.1, for="203.0.113.7:1", for=10.9.9.9'), "203.0.113.7"],
    ["not hidden by an open quote", by('for=", for=203.0.113.7'), "203.0.113.7"],
    ["the proxy when Forwarded hides the client", by("for=_hidden, for=unknown"), "10.1.2.3"],
    ["the proxy when Forwarded names nobody", by("proto=https"), "10.1.2.3"],
    ["what both headers name", by("for=203.0.113.7", "203.0.113.7:80"), "203.0.113.7"],
    ["the proxy when the headers differ", by("for=198.51.100.1", "203.0.113.7"), "10.1.2.3"],
    ["a stranger, whatever it forwards", from("203.0.113.7", { forwarded: "for=198.51.100.1" }), "203.0.113.7"],
  ])("is %s", (_, incoming, client) => expect(createPeers(TRUSTED).clientOf(incoming)).toBe(client));

  test("is the socket's address where no proxy is trusted", () =>
    expect(createPeers([]).clientOf(via("127.0.0.1", "203.0.113.7"))).toBe("127.0.0.1"));
});

describe("the id of a request", () => {
  const id = (value: string, address = "10.1.2.3", trusted: readonly string[] = TRUSTED) =>
    createPeers(trusted).requestIdOf(from(address, { "x-request-id": value }));

  test.each(["b7a1c2d3", "0f8fad5b-d9cb-469f-a165-70867728950e", "Root_1.2-3", "x".repeat(128)])(
    "is taken from a trusted proxy: %s",
    (value) => expect(id(value)).toBe(value),
  );

  test.each(["", "short", "x".repeat(129), "has a space in it", 'quote"quote"', "line\nbreak.", "ünïcödé-id"])(
    "is not taken when it is malformed: %j",
    (value) => expect(id(value)).toBeNull(),
  );

  test("is not taken from anybody else", () => {
    expect(id("b7a1c2d3", "203.0.113.7")).toBeNull();
    expect(id("b7a1c2d3", "127.0.0.1", [])).toBeNull();
  });

  test("is not made up where there is none", () =>
    expect(createPeers(TRUSTED).requestIdOf(from("10.1.2.3"))).toBeNull());
});
