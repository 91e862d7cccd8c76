import { afterEach, describe, expect, test } from "vitest";
import { claimSchema } from "../../../api/arbiter/claim.ts";
import { POLICY_VERSIONS } from "../../../api/arbiter/policy/index.ts";
import { VERSION_1 } from "../../../api/arbiter/policy/v1/policy.ts";
import type { PolicyVersions } from "../../../api/arbiter/policy/version.ts";
import { DECIDED, sends, sha256, TEXT, to, UNDECIDED } from "../../support/arbiter/rows.ts";
import {
  CLAIMS,
  EXPIRED,
  examine,
  factsNamed,
  judged,
  OTHER_HOST,
  PUBLIC_ADDRESS,
  SELF_SIGNED,
  startSite,
} from "../../support/arbiter/site.ts";
import { PRESIGNED_REDIRECTS } from "../../support/arbiter/urls.ts";
import { forFile } from "../../support/for-file.ts";

const ROWS = [...DECIDED, ...UNDECIDED];

const site = await forFile(startSite());
for (const [index, { serve }] of ROWS.entries())
  for (const version of [1, 2]) site.handlers.set(`/v${version}/row/${index}`, serve);

const resolve = async (name: string) =>
  name === "trust.example" ? ["93.184.216.99"] : name === "inside.example" ? ["192.168.0.7"] : [PUBLIC_ADDRESS];

/** The rows as this version of the policy decides them. */
const rowsOf = (version: 1 | 2) =>
  ROWS.map(({ v2, ...row }, index) => ({
    ...row,
    ...(version === 2 && v2),
    isDecided: row.asked === 1,
    path: `/v${version}/row/${index}`,
  }));

describe.each([1, 2] as const)("decision table of version %i, against a server that misbehaves", (version) => {
  const policies: PolicyVersions = version === 1 ? [VERSION_1] : POLICY_VERSIONS;

  test.concurrent.each(rowsOf(version))(
    "$is: $verdict",
    async ({ path, conditions = {}, verdict, findings, asked, isDecided }) => {
      // Where the deadline decides, it is shorter than in production. Elsewhere it must not decide.
      const fetcher = site.fetcher({ resolve, ...(isDecided ? {} : { deadlineMs: 2_500 }) });
      const evidence = await examine(
        "http-delivery",
        { url: `http://shop.example${path}`, ...conditions },
        { fetcher, policies },
      );
      expect(judged(evidence)).toEqual(findings);
      expect(evidence.verdict).toBe(verdict);
      expect(site.requests.filter((request) => request.path === path)).toHaveLength(asked);
      expect(factsNamed(evidence, "fetch_attempt").map(({ attempt }) => attempt)).toEqual(asked === 1 ? [1] : [1, 2]);
      expect(evidence.timeline).toHaveLength(asked);
    },
  );
});

describe("TLS", () => {
  const get = async (certificate: { cert: string; key: string } | undefined, url: string) => {
    const own = await startSite(certificate);
    own.handlers.set("/", sends(200, {}, TEXT));
    const evidence = await examine("http-delivery", { url }, { fetcher: own.fetcher() });
    own.close();
    return { evidence, requests: own.requests, dialled: own.dialled };
  };

  test("A certificate for the host name releases, and Host is that name", async () => {
    const { evidence, requests, dialled } = await get(undefined, "https://shop.example/");
    expect(evidence.verdict).toBe("release");
    expect(requests.map(({ host }) => host)).toEqual(["shop.example"]);
    expect(dialled).toEqual([`${PUBLIC_ADDRESS}:443`]);
  });

  test.each([
    ["an expired certificate", EXPIRED, "https://shop.example/"],
    ["a certificate for another name", OTHER_HOST, "https://shop.example/"],
    ["a self-signed certificate", SELF_SIGNED, "https://shop.example/"],
    ["a certificate for a name, requested by address", undefined, `https://${PUBLIC_ADDRESS}/`],
  ])("%s escalates, and no request is made", async (_is, certificate, url) => {
    const { evidence, requests } = await get(certificate, url);
    expect(judged(evidence)).toEqual(["status unknown tls"]);
    expect(requests).toEqual([]);
  });
});

describe("presigned links", async () => {
  const site = await forFile(startSite());
  const LEADS_TO: Record<string, string> = { "inside.shop-files.com": "10.0.0.1", "trust.example": "93.184.216.99" };
  /**
   * Every other name leads to the test's server. Over http, because the server's certificate does not cover the stores.
   */
  const fetcher = site.fetcher({
    resolve: async (name) => [LEADS_TO[name] ?? PUBLIC_ADDRESS],
  });
  afterEach(() => {
    site.handlers.clear();
    site.requests.length = 0;
    site.dialled.length = 0;
  });

  const CONTENT = "the deliverable, whole and as agreed";
  const urlOf = (location: string) => new URL(`http://${location}`);

  /** Redirects from a shop to the store that serves the content, and returns the claim's evidence. */
  async function redirectedTo(location: string, expected = sha256(CONTENT)) {
    site.handlers.set("/report.pdf-at-the-shop", to(`http://${location}`));
    site.handlers.set(urlOf(location).pathname, sends(200, {}, CONTENT));
    const conditions = { url: "http://shop.example/report.pdf-at-the-shop", expect_sha256: expected };
    return examine("http-delivery", conditions, { fetcher });
  }

  describe("presigned redirect", () => {
    test.each(PRESIGNED_REDIRECTS)("$store is followed and judged by its content", async ({ location }) => {
      const url = urlOf(location);
      const evidence = await redirectedTo(location);
      expect(judged(evidence)).toEqual(["status true match", "expect_sha256 true match"]);
      expect(evidence.verdict).toBe("release");
      // The store receives the whole link; the public record contains no secret of it.
      expect(site.requests.at(-1)).toMatchObject({ path: `${url.pathname}${url.search}`, host: url.host });
      expect(factsNamed(evidence, "fetch_attempt")).toMatchObject([
        { redirects: [{ status: 302, location: `${url.origin}${url.pathname}` }], failure: null },
      ]);
      expect(JSON.stringify(evidence)).not.toContain("?");
    });

    test("Different content behind a presigned redirect is a refund", async () => {
      const [first] = PRESIGNED_REDIRECTS;
      expect((await redirectedTo(first?.location ?? "", sha256("something else"))).verdict).toBe("refund");
    });

    test.each([
      ["a private address", "10.0.0.1/a?X-Amz-Signature=1"],
      ["the cloud's metadata", "169.254.169.254/latest?sig=1"],
      ["a name that leads inside", "inside.shop-files.com/a?Signature=1"],
      ["another port", "bucket.s3.amazonaws.com:8080/a?X-Amz-Signature=1"],
      ["a user name and password", "key:secret@bucket.s3.amazonaws.com/a?X-Amz-Signature=1"],
      ["the service itself", "trust.example/cert/1?sig=1"],
    ])("A presigned redirect to %s is not followed", async (_, location) => {
      const evidence = await redirectedTo(location);
      expect(evidence.verdict).toBe("escalate");
      expect(judged(evidence)[0]).toBe("status unknown blocked");
      expect(site.dialled).toEqual(Array(2).fill(`${PUBLIC_ADDRESS}:80`));
    });
  });

  describe("claim whose URL contains a key", () => {
    const faults = (url: string) => {
      const { error } = claimSchema(CLAIMS).safeParse({ category: "http-delivery", conditions: { url } });
      return error?.issues.map(({ code, message }) => `${code}: ${message}`) ?? [];
    };

    // Public links have parameters with these names too.
    const PUBLIC = ["Google Drive", "Firebase"];
    test.each(PRESIGNED_REDIRECTS.filter(({ store }) => !PUBLIC.includes(store)))(
      "$store is rejected",
      ({ location }) => {
        expect(faults(`https://${location}`)).toEqual([
          expect.stringMatching(/^custom: .*this URL contains credentials$/),
        ]);
      },
    );

    test.each([
      "https://shop.example/report.pdf?version=2&page=7",
      "https://shop.example/search?q=signature&sort=signed",
      "https://shop.example/signature?design=sig&tokens=5",
      "https://shop.example/a?expires=1767229200",
    ])("%s is accepted", (url) => {
      expect(faults(url)).toEqual([]);
    });
  });
});
