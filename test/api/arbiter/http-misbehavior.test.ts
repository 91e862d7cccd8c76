import { describe, expect, test } from "vitest";
import { POLICY_VERSIONS } from "../../../api/arbiter/policy/index.ts";
import { VERSION_1 } from "../../../api/arbiter/policy/v1/policy.ts";
import type { PolicyVersions } from "../../../api/arbiter/policy/version.ts";
import { DECIDED, sends, TEXT, UNDECIDED } from "../../support/arbiter/rows.ts";
import {
  EXPIRED,
  examine,
  factsNamed,
  judged,
  OTHER_HOST,
  PUBLIC_ADDRESS,
  SELF_SIGNED,
  startSite,
} from "../../support/arbiter/site.ts";
import { forFile } from "../../support/for-file.ts";

const ROWS = [...DECIDED, ...UNDECIDED];

const site = await forFile(startSite());
for (const [index, { serve }] of ROWS.entries())
  for (const version of [1, 2]) site.handlers.set(`/v${version}/row/${index}`, serve);

const resolve = async (name: string) =>
  name === "trust.example" ? ["93.184.216.99"] : name === "inside.example" ? ["192.168.0.7"] : [PUBLIC_ADDRESS];

/** The rows as a version of the policy decides them. */
const rowsOf = (version: 1 | 2) =>
  ROWS.map(({ v2, ...row }, index) => ({
    ...row,
    ...(version === 2 && v2),
    isDecided: row.asked === 1,
    path: `/v${version}/row/${index}`,
  }));

describe.each([1, 2] as const)("the decision table of version %i, against a server that misbehaves", (version) => {
  const policies: PolicyVersions = version === 1 ? [VERSION_1] : POLICY_VERSIONS;

  test.concurrent.each(rowsOf(version))(
    "$is: $verdict",
    async ({ path, conditions = {}, verdict, findings, asked, isDecided }) => {
      // Where the deadline decides, less of it than is given; it is not to decide where the answer does.
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

  test("a certificate for the host name releases, and Host is that name", async () => {
    const { evidence, requests, dialled } = await get(undefined, "https://shop.example/");
    expect(evidence.verdict).toBe("release");
    expect(requests.map(({ host }) => host)).toEqual(["shop.example"]);
    expect(dialled).toEqual([`${PUBLIC_ADDRESS}:443`]);
  });

  test.each([
    ["an expired certificate", EXPIRED, "https://shop.example/"],
    ["a certificate for another name", OTHER_HOST, "https://shop.example/"],
    ["a certificate that nobody vouches for", SELF_SIGNED, "https://shop.example/"],
    ["a certificate for a name, asked by its address", undefined, `https://${PUBLIC_ADDRESS}/`],
  ])("%s escalates, and no request is made", async (_is, certificate, url) => {
    const { evidence, requests } = await get(certificate, url);
    expect(judged(evidence)).toEqual(["status unknown tls"]);
    expect(requests).toEqual([]);
  });
});
