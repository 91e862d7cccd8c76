import type { Context } from "hono";
import { z } from "zod";
import { CERTIFICATE_ENTRIES, type PublicLog } from "../log/index.ts";
import { etagOf, inPath, isHeld, json, jsonOrPage } from "../platform/http/answer.ts";
import { Problem } from "../platform/http/errors.ts";
import { isPaid, type PaidRoute, paidRoute, type Route } from "../platform/http/route.ts";
import { memoize } from "../platform/memo.ts";
import { formatUsd } from "../platform/money.ts";
import { MAIN_NETWORK, NETWORKS } from "../platform/networks.ts";
import { html, type Markup } from "../platform/page/html.ts";
import { page, renderPage, wantsHtml } from "../platform/page/page.ts";
import { CERTIFICATE_CREDENTIAL } from "./agent-registries/credential.ts";
import type { TestOrder, TestOrdering } from "./agent-registries/order.ts";
import { appearance, renderBadge, renderPlaceholderBadge } from "./appearance.ts";
import type { MarkedCertificate } from "./certificate.ts";
import type { Certification } from "./certify.ts";
import { certificateRecord } from "./issue.ts";
import { KINDS } from "./kinds/index.ts";
import type { Kind } from "./kinds/kind.ts";
import type { SharedAddresses } from "./links.ts";
import { certificatePreview, placeholderPreview, type RenderPreview } from "./og-image.ts";
import { renderCertificatePage } from "./pages/certificate-page.ts";
import { PRODUCTS } from "./products.ts";
import { CERTIFICATE, CERTIFICATE_RECORD, certificateId, MENU } from "./schemas.ts";
import { sharedRecord, verificationRoutes } from "./verification-routes.ts";

const renderMenu = ({ menu, other_products }: Menu, baseUrl: string): string =>
  renderPage({
    title: "Tests",
    description: "Every test of an agent: what it checks, what it costs, and how to run it.",
    canonical: `${baseUrl}/inspect`,
    jsonUrl: `${baseUrl}/inspect?format=json`,
    current: "/inspect",
    main: html`<div class="hero"><p class="eyebrow">Tests</p>
<h1>What we test</h1>
<p class="lead">Each test leads to a public certificate. <a href="/docs/pay">Start with one payment</a>; <a href="/docs/tests">complete programs that pass the others</a>. Also available <a href="/inspect?format=json">as JSON</a>.</p></div>
${menu.map(
  (test) => html`<section aria-labelledby="${test.id}"><h2 id="${test.id}">${test.summary}</h2>
<p><code>${test.method} ${test.path}</code> · <strong>${cost(test)}</strong></p>
<ol class="measure">${test.steps.map((step) => html`<li>${step}</li>`)}</ol>
<p class="measure soft">${test.how_to_run}</p></section>`,
)}
<section aria-labelledby="others"><h2 id="others">Also for sale</h2>
<ul class="rows">${other_products.map(
      (one) => html`<li><h3>${one.summary}</h3><span class="price">${one.price} ${NETWORKS[one.network].money}</span>
<code class="note soft">${one.method} ${one.path}</code></li>`,
    )}</ul></section>`,
  });

const cost = ({ price, total_cost, network }: Menu["menu"][number]): Markup =>
  html`${total_cost} ${NETWORKS[network].money}${total_cost !== price && html`, of which ${price} to start`}`;

interface CertificationRouteParts {
  readonly certification: Certification;
  /** Certificates of another kind, at the same URLs. */
  readonly shared: SharedAddresses;
  readonly ordering: TestOrdering;
  readonly publicLog: PublicLog;
  readonly baseUrl: string;
  readonly now: () => Date;
  readonly renderOgImage: RenderPreview;
}

const BADGE_MAX_AGE_SECONDS = 300;
const badges = memoize<{ readonly svg: string; readonly etag: string }>(2_000);
/** Rendering a picture blocks the only thread for tens of milliseconds. */
const pictures = memoize<Uint8Array>(64);

const ID = { name: "id", description: "The certificate's id.", schema: certificateId };
/** A seller's ID is twice as long. */
const ANY_ID = { ...ID, schema: z.string().regex(/^([0-9a-f]{16}){1,2}$/) };
const FILE = {
  name: "file",
  description: "The certificate's id followed by `.svg`.",
  schema: z.string().regex(/^([0-9a-f]{16}){1,2}\.svg$/),
};

const SVG = { "image/svg+xml": null };
const PNG = { "image/png": null };

export function certificationRoutes(parts: CertificationRouteParts): readonly Route[] {
  return [
    ...KINDS.map((kind) => testRoute(kind, parts)),
    ...verificationRoutes(parts),
    {
      method: "GET",
      path: "/cert/:id",
      summary: "A certificate's public page",
      parameters: [inPath(ANY_ID)],
      output: jsonOrPage(z.union([CERTIFICATE_RECORD, parts.shared.schemas.record])),
      problems: ["not_found"],
      handle: (c) => certificate(c, parts),
    },
    {
      method: "GET",
      path: "/cert/:id/credential",
      summary: "A certificate as a signed credential, byte for byte as published in ERC-8004's registries",
      parameters: [inPath(ID)],
      output: json(CERTIFICATE_CREDENTIAL),
      problems: ["not_found"],
      handle: (c) => publishedCredential(c, parts),
    },
    {
      method: "GET",
      path: "/cert/:id/og.png",
      summary: "A certificate's preview image",
      parameters: [inPath(ANY_ID)],
      output: PNG,
      others: { 404: PNG },
      handle: (c) => ogImage(c, parts),
      placeholder: (error) => ({
        type: "image/png",
        content: pictures(error, () => parts.renderOgImage(placeholderPreview(error))),
      }),
    },
    {
      method: "GET",
      path: "/badge/:file",
      summary: "A certificate's README badge, as SVG",
      parameters: [inPath(FILE)],
      output: SVG,
      others: { 304: {}, 404: SVG },
      handle: (c) => badge(c, parts),
      placeholder: (error) => ({
        type: "image/svg+xml",
        content: renderPlaceholderBadge(error),
      }),
    },
  ];
}

function testRoute(kind: Kind, { certification, ordering, baseUrl }: CertificationRouteParts): PaidRoute {
  const path = `/test/${kind.product}`;
  return paidRoute<TestOrder>({
    id: `test.${kind.product}`,
    method: "POST",
    path,
    terms: { networks: [MAIN_NETWORK], price: kind.price },
    summary: kind.summary,
    description: kind.description,
    ...ordering,
    output: json(CERTIFICATE),
    example: {
      input: {},
      output: {
        conformance: true,
        product: kind.product,
        verdict: "pass",
        level: "Conformant",
        cert_url: `${baseUrl}/cert/0123456789abcdef`,
        badge_url: `${baseUrl}/badge/0123456789abcdef.svg`,
      },
    },
    menu: {
      capability: PRODUCTS[kind.product].capability,
      totalCost: kind.price,
      steps: kind.steps,
      howToRun: `Point any x402 client at POST ${baseUrl}${path}. No body is needed.`,
    },
    sell: { immediate: (sale) => certification.certify(kind, sale) },
  });
}

/** Creates the route of the menu of tests, which is derived from the route table. */
export function inspectRoute(routes: () => readonly Route[], baseUrl: string): Route {
  return {
    method: "GET",
    path: "/inspect",
    summary: "Menu of tests: prices, steps and how to run them",
    output: jsonOrPage(MENU),
    handle(c) {
      const document = menu(routes().filter(isPaid), baseUrl);
      return wantsHtml(c) ? page(c, renderMenu(document, baseUrl)) : c.json(document, 200, { vary: "Accept" });
    },
  };
}

type Menu = ReturnType<typeof menu>;

function menu(paid: readonly PaidRoute[], baseUrl: string) {
  const offer = ({ id, method, path, summary, terms: { price, networks } }: PaidRoute) => ({
    id: id.replace(/^test\./, ""),
    method,
    path,
    url: `${baseUrl}${path}`,
    summary,
    network: networks[0],
    price: formatUsd(price),
    price_atomic: price.toString(),
  });
  return {
    service: "Agent Payment Trust Service",
    menu: paid.flatMap((route) =>
      route.menu === undefined
        ? []
        : [
            {
              ...offer(route),
              total_cost: formatUsd(route.menu.totalCost),
              capability: route.menu.capability,
              steps: route.menu.steps,
              how_to_run: route.menu.howToRun,
            },
          ],
    ),
    other_products: paid.filter((route) => route.menu === undefined).map(offer),
  };
}

async function found(c: Context, { certification }: CertificationRouteParts): Promise<MarkedCertificate> {
  const id = c.req.param("id") ?? "";
  const certificate = await certification.certificate(id);
  if (certificate === null) throw new Problem("not_found", { detail: `There is no certificate ${id.slice(0, 40)}.` });
  return certificate;
}

async function certificate(c: Context, parts: CertificationRouteParts): Promise<Response> {
  const other = await parts.shared.certificate(c.req.param("id") ?? "");
  if (other !== null) return sharedRecord(c, other);
  const record = await found(c, parts);
  const now = parts.now();
  const { baseUrl, certification, publicLog } = parts;
  const [publications, places] = await Promise.all([
    certification.publications(record.id),
    publicLog.places.of(record.id, CERTIFICATE_ENTRIES.types),
  ]);
  if (wantsHtml(c)) return page(c, renderCertificatePage(record, { publications, places, baseUrl, now }));
  const shown = certificateRecord(record, { publications, places, baseUrl }, now);
  return c.json(shown, 200, { vary: "Accept" });
}

async function publishedCredential(c: Context, { certification }: CertificationRouteParts): Promise<Response> {
  const id = c.req.param("id") ?? "";
  const document = await certification.publishedCredential(id);
  if (document === null)
    throw new Problem("not_found", { detail: `Nothing is published about a certificate ${id.slice(0, 40)}.` });
  return c.body(document, 200, { "content-type": "application/json", "cache-control": "public, max-age=86400" });
}

async function ogImage(c: Context, parts: CertificationRouteParts): Promise<Response> {
  const preview =
    (await parts.shared.preview(c.req.param("id") ?? "")) ?? certificatePreview(await found(c, parts), parts.now());
  const { id, shown } = preview;
  const png = pictures(`${id} ${shown.state} ${shown.short}`, () => parts.renderOgImage(preview));
  return c.body(new Uint8Array(png), 200, { "content-type": "image/png", "cache-control": "public, max-age=3600" });
}

async function badge(c: Context, parts: CertificationRouteParts): Promise<Response> {
  const [, id] = /^([0-9a-f]{16,32})\.svg$/.exec(c.req.param("file") ?? "") ?? [];
  const drawn = id === undefined ? null : await drawnBadge(id, parts);
  const { svg, etag } = drawn ?? badges("unknown", () => tagged(renderPlaceholderBadge("missing")));
  const headers = {
    etag,
    "content-type": "image/svg+xml; charset=utf-8",
    "cache-control": `public, max-age=${BADGE_MAX_AGE_SECONDS}`,
  };
  if (drawn === null) return c.body(svg, 404, headers);
  if (isHeld(c.req.header("if-none-match"), etag)) return c.body(null, 304, headers);
  // Setting several headers through the context would cost an extra object.
  return new Response(svg, { headers });
}

const tagged = (svg: string) => ({ svg, etag: etagOf(svg) });

async function drawnBadge(id: string, { certification, shared, now }: CertificationRouteParts) {
  const certificate = await certification.shown(id);
  if (certificate !== null) {
    const at = now();
    return badges(`${id} ${appearance(certificate, at).short}`, () => tagged(renderBadge(certificate, at)));
  }
  const other = await shared.badge(id);
  return other === null ? null : tagged(other);
}
