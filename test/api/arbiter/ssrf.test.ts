import { BlockList, isIPv6, Socket } from "node:net";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { claimSchema } from "../../../api/arbiter/claim.ts";
import { FETCH_LIMITS_V1 } from "../../../api/arbiter/policy/v1/tables.ts";
import { CLAIMS, PUBLIC_ADDRESS, type Site, startSite } from "../../support/arbiter/site.ts";
import { HOSTILE_URLS, LEADS_INSIDE } from "../../support/arbiter/urls.ts";

/**
 * The test's own list of non-public networks, independent of the guard's. One list per family, because Node maps IPv4
 * into IPv6.
 */
const INSIDE = { ipv4: new BlockList(), ipv6: new BlockList() };
for (const [net, bits] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
  ["168.63.129.16", 32],
  ["192.31.196.0", 24],
  ["192.52.193.0", 24],
  ["192.175.48.0", 24],
] as const)
  INSIDE.ipv4.addSubnet(net, bits, "ipv4");
for (const [net, bits] of [
  ["::", 3],
  ["4000::", 2],
  ["8000::", 1],
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
] as const)
  INSIDE.ipv6.addSubnet(net, bits, "ipv6");

/** The service's addresses: its public one and its interfaces'. */
const OWN = ["93.184.216.99", "93.184.216.77", "2606:4700::77"];
const resolve = async (name: string): Promise<readonly string[]> =>
  name === "trust.example" ? ["93.184.216.99"] : (LEADS_INSIDE[name] ?? [PUBLIC_ADDRESS]);

let site: Site;
const connects: unknown[] = [];
beforeAll(async () => {
  site = await startSite();
});
afterAll(() => site.close());
beforeEach(() => {
  site.dialled.length = 0;
  connects.length = 0;
  const real = Socket.prototype.connect;
  const spy = vi.spyOn(Socket.prototype, "connect").mockImplementation(function (this: Socket, ...args: unknown[]) {
    connects.push((args[0] as { host?: string }[])[0]?.host ?? args[0]);
    return Reflect.apply(real, this, args);
  });
  return () => spy.mockRestore();
});

const attempt = (url: string) =>
  site
    .fetcher({ resolve, ownAddresses: () => OWN })
    .attempt({ url, expectStatus: null, contains: null, limits: FETCH_LIMITS_V1 }, new AbortController().signal);

describe("socket guard", () => {
  test("At least 150 hostile URLs are tested, all different", () => {
    expect(new Set(HOSTILE_URLS).size).toBe(HOSTILE_URLS.length);
    expect(HOSTILE_URLS.length).toBeGreaterThanOrEqual(150);
  });

  test("A public URL is connected to, which shows that the next test can fail", async () => {
    site.handlers.set("/fine", (_request, response) => response.end("fine"));
    expect(await attempt("http://public.example/fine")).toMatchObject({ failure: null, head: { status: 200 } });
    expect(site.dialled).toEqual([`${PUBLIC_ADDRESS}:80`]);
    expect(connects).toEqual(["127.0.0.1"]);
  });

  test.each(HOSTILE_URLS.filter((url) => URL.canParse(url)))("%s opens no connection", async (url) => {
    expect(await attempt(url)).toMatchObject({ body: null, failure: url.includes("none.example") ? "dns" : "blocked" });
    expect(site.dialled).toEqual([]);
    expect(connects).toEqual([]);
  });

  test.each(HOSTILE_URLS)("A redirect to %s leads to no connection", async (url) => {
    // Sent as bytes, because HTTP header strings are limited to Latin-1.
    site.handlers.set("/to", ({ socket }) =>
      socket.end(Buffer.from(`HTTP/1.1 302 Found\r\nlocation: ${url}\r\ncontent-length: 0\r\n\r\n`)),
    );
    const fetched = await attempt("http://public.example/to");
    expect(fetched.body).toBeNull();
    expect(fetched.failure).toMatch(/^(blocked|redirect|dns)$/);
    expect(site.dialled).toEqual([`${PUBLIC_ADDRESS}:80`]);
    expect(connects).toEqual(["127.0.0.1"]);
  });

  test.each(
    HOSTILE_URLS.filter((url) => !/\/\/([\w-]+\.example|BÜCHER\.example)\/$/.test(url) || /trust\.example/i.test(url)),
  )("%s is not accepted in a claim", (url) => {
    const { success, error } = claimSchema(CLAIMS).safeParse({
      category: "http-delivery",
      conditions: { url },
    });
    const isOwnAddress = OWN.some((address) => url === `http://${address}/` || url === `http://[${address}]/`);
    // Only a lookup shows that these addresses are the service's.
    if (isOwnAddress) return expect(success).toBe(true);
    expect(success).toBe(false);
    const isRefused = error?.issues.every((issue) => issue.code === "custom");
    expect(isRefused).toBe(URL.canParse(url));
  });

  test("A name is connected to exactly when its address is public", async () => {
    const part = fc.oneof(
      fc.integer({ min: 0, max: 255 }),
      fc.constantFrom(0, 10, 100, 127, 168, 169, 172, 192, 198, 203, 224, 255),
    );
    const four = fc.tuple(part, part, part, part).map((parts) => parts.join("."));
    const group = fc.oneof(
      fc.integer({ min: 0, max: 0xffff }),
      fc.constantFrom(0, 0x2001, 0x2002, 0x2606, 0xdb8, 0x3fff),
    );
    const six = fc
      .array(group, { minLength: 8, maxLength: 8 })
      .map((groups) => groups.map((one) => one.toString(16)).join(":"));
    await fc.assert(
      fc.asyncProperty(fc.oneof(four, six), async (address) => {
        site.dialled.length = 0;
        const fetcher = site.fetcher({ resolve: async (name) => (name === "any.example" ? [address] : []) });
        await fetcher.attempt(
          { url: "http://any.example/", expectStatus: null, contains: null, limits: FETCH_LIMITS_V1 },
          new AbortController().signal,
        );
        const isInside = isIPv6(address) ? INSIDE.ipv6.check(address, "ipv6") : INSIDE.ipv4.check(address);
        expect(site.dialled).toEqual(isInside ? [] : [`${address}:80`]);
      }),
      { numRuns: 1_000 },
    );
  });
});

describe("service's own host", () => {
  const fetched = (url: string, ownAddresses: readonly string[] = []) => {
    site.handlers.set("/fine", (_request, response) => response.end("fine"));
    const dial = () => site.dial(PUBLIC_ADDRESS, 80);
    const at = async (name: string) => (name.endsWith(".example") ? ["93.184.216.99"] : []);
    return site
      .fetcher({ resolve: at, dial, ownAddresses: () => ownAddresses })
      .attempt({ url, expectStatus: null, contains: null, limits: FETCH_LIMITS_V1 }, new AbortController().signal);
  };

  test("Another name at the service's address is fetched, because behind a CDN both share the CDN's address", async () => {
    expect(await fetched("http://neighbor.example/fine")).toMatchObject({ failure: null, head: { status: 200 } });
    expect(await fetched("http://nottrust.example/fine")).toMatchObject({ failure: null });
  });

  test.each([
    "http://trust.example/fine",
    "http://TRUST.example/fine",
    "http://www.trust.example/fine",
    "http://trust.example./fine",
    "http://93.184.216.99/fine",
    "http://0x5db8d863/fine",
  ])("%s is blocked", async (url) => {
    expect(await fetched(url)).toMatchObject({ failure: "blocked", head: null });
    expect(site.dialled).toEqual([]);
  });

  test("A redirect from another name to the service is blocked", async () => {
    for (const location of ["http://trust.example/fine", "//www.trust.example/fine", "http://93.184.216.99/fine"]) {
      site.handlers.set("/to", (_request, response) => response.writeHead(302, { location }).end());
      expect(await fetched("http://neighbor.example/to")).toMatchObject({ failure: "blocked", body: null });
    }
  });

  test("An address of this machine is blocked under any name", async () => {
    expect(await fetched("http://neighbor.example/fine", ["93.184.216.99"])).toMatchObject({ failure: "blocked" });
  });
});

describe("names that change", () => {
  test("A name is looked up once, and only the vetted address is connected to", async () => {
    site.handlers.set("/fine", (_request, response) => response.end("fine"));
    const asked: string[] = [];
    const changing = async (name: string) => {
      asked.push(name);
      return asked.filter((one) => one === "flips.example").length > 1 ? ["127.0.0.1"] : [PUBLIC_ADDRESS];
    };
    const fetcher = site.fetcher({ resolve: changing, ownHost: "93.184.216.99" });
    const fetched = await fetcher.attempt(
      { url: "http://flips.example/fine", expectStatus: null, contains: null, limits: FETCH_LIMITS_V1 },
      new AbortController().signal,
    );
    expect(fetched.head?.status).toBe(200);
    expect(asked).toEqual(["flips.example"]);
    expect(site.dialled).toEqual([`${PUBLIC_ADDRESS}:80`]);
    // The second attempt looks the name up again and gets the new address.
    const second = await fetcher.attempt(
      { url: "http://flips.example/fine", expectStatus: null, contains: null, limits: FETCH_LIMITS_V1 },
      new AbortController().signal,
    );
    expect(second.failure).toBe("blocked");
    expect(site.dialled).toHaveLength(1);
  });

  test("A redirect to the same name is looked up and vetted again", async () => {
    site.handlers.set("/again", (_request, response) => response.writeHead(307, { location: "/fine" }).end());
    let lookups = 0;
    const changing = async () => (++lookups > 1 ? ["127.0.0.1"] : [PUBLIC_ADDRESS]);
    const fetcher = site.fetcher({ resolve: changing, ownHost: "93.184.216.99" });
    const fetched = await fetcher.attempt(
      { url: "http://flips.example/again", expectStatus: null, contains: null, limits: FETCH_LIMITS_V1 },
      new AbortController().signal,
    );
    expect(fetched).toMatchObject({
      failure: "blocked",
      redirects: [{ status: 307, location: "http://flips.example/fine" }],
    });
    expect(site.dialled).toHaveLength(1);
  });
});
