import { tmpdir } from "node:os";
import { Client, InMemoryTransport } from "@modelcontextprotocol/client";
import { BEHAVIORAL_KINDS } from "../../../api/certificates/kinds/index.ts";
import { renderCertificatePage } from "../../../api/certificates/pages/certificate-page.ts";
import { USAGE } from "../../../packages/escrow/src/refund-command.ts";
import { createBudget } from "../../../packages/mcp/src/budget.ts";
import { askService } from "../../../packages/mcp/src/fate.ts";
import { httpService } from "../../../packages/mcp/src/http-service.ts";
import { keptIn } from "../../../packages/mcp/src/pending-payments.ts";
import { createShop } from "../../../packages/mcp/src/shop.ts";
import { toolServer } from "../../../packages/mcp/src/tool-server.ts";
import * as verifier from "../../../packages/verifier/src/index.ts";
import { EXPIRED, SAMPLE_NOW } from "../certificates/samples.ts";

// Prints, as one JSON object by name, the texts that no GET of a service without history returns.
const [baseUrl = ""] = process.argv.slice(2);

/** What it paid is its own, and no price of today's. */
const CERTIFICATE = { ...EXPIRED, settlement: { ...EXPIRED.settlement, amountAtomic: 12_345n } };

async function tools(): Promise<readonly (readonly [string, unknown])[]> {
  const service = httpService(baseUrl);
  const payer = null;
  const parts = { payTo: null, budget: createBudget(0n), pending: keptIn(tmpdir()), askFate: askService(service) };
  const shop = createShop({ service, payer, ...parts });
  const server = await toolServer({ service, shop, payer, verifier, logPolicy: null, askLeftOut: null });
  const [near, far] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: "test", version: "1.0.0" });
  await Promise.all([server.connect(far), client.connect(near)]);
  const { tools: found } = await client.listTools();
  await client.close();
  return found.map((tool) => [`the tool ${tool.name}`, tool]);
}

const texts: readonly (readonly [string, unknown])[] = [
  ...(await tools()),
  [
    "the page of a certificate",
    renderCertificatePage(CERTIFICATE, { publications: [], places: [], baseUrl, now: SAMPLE_NOW }),
  ],
  ...BEHAVIORAL_KINDS.map(({ product, failed }) => [`a FAIL of ${product}`, failed] as const),
  ["the usage of the refund", USAGE],
];
console.log(JSON.stringify(Object.fromEntries(texts)));
