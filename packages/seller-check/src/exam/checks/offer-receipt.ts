import {
  checkSigned,
  documentUrlFor,
  InputError,
  readStatement,
  type SignedReport,
} from "../../../../verifier/src/index.ts";
import type { Exchange } from "../exchange.ts";
import { settlementSaid } from "../payment.ts";
import { readQuotes, record, type Terms } from "../terms.ts";
import type { Visit } from "../visit.ts";
import { type CheckResult, type Finding, judged, notApplicable, shownBy } from "../vocabulary.ts";
import type { Sale } from "./purchase.ts";

/** The x402 extension, version 1. */
const EXTENSION = "offer-receipt";

/** Verifies the signed offer of the entry that was paid, and the receipt of the payment. */
export async function checkOfferReceipt(visit: Visit, terms: Terms, sale: Sale): Promise<CheckResult> {
  const quoted = visit.exchanges.find(({ answer }) => answer?.status === 402);
  const offer = quoted === undefined ? null : offerOf(quoted, terms);
  const receipt = infoOf(record(settlementSaid(sale.answer)).extensions).receipt ?? null;
  if (offer === null && receipt === null)
    return notApplicable("offer_receipt", "this seller signs no offers or receipts");
  const at = await visit.parts.ledger.now();
  const { accepted, network, payTo, url: resourceUrl } = terms;
  const transaction = String(record(settlementSaid(sale.answer)).transaction);
  const payer = visit.parts.payer.address;
  const findings: Finding[] = [];
  const did = oneDidDocument(visit);
  if (offer !== null && quoted !== undefined) {
    const { scheme, asset, amount } = accepted;
    const members = { resourceUrl, scheme, network: accepted.network, asset, payTo: accepted.payTo, amount } as Members;
    findings.push(
      ...(await examined({ kind: "offer", signed: offer, exchange: quoted }, { at: at - 60, members, did })),
    );
  }
  if (receipt !== null) {
    const signed = { kind: "receipt", signed: receipt as Json, exchange: sale.exchange } as const;
    const members = { resourceUrl, network, payer };
    findings.push(...(await examined(signed, { at, payTo, members, settled: transaction, did })));
  }
  return judged("offer_receipt", findings);
}

type Json = Parameters<typeof checkSigned>[1];
type Members = Readonly<Record<string, Json>>;

interface SignedThing {
  readonly kind: "offer" | "receipt";
  readonly signed: Json;
  readonly exchange: Exchange;
}

interface Wanted {
  readonly at: number;
  readonly payTo?: string;
  readonly members: Members;
  /** Fetches the DID document of a key. */
  readonly did: (kid: string) => Promise<string | undefined>;
  /** The transaction in the response. */
  readonly settled?: string;
}

async function examined({ kind, signed, exchange }: SignedThing, wanted: Wanted): Promise<readonly Finding[]> {
  const of = shownBy(exchange);
  try {
    const read = readStatement(kind, signed);
    const did = read.format === "jws" ? await wanted.did(read.kid) : undefined;
    const { checks, payload }: SignedReport = await checkSigned(kind, signed, { ...wanted, did });
    return [
      of(`offer_receipt.${kind}_read`, `The ${kind} can be read`, true),
      ...checks.map(({ statement, holds }) => of(`offer_receipt.${kind}_true`, `The ${kind}: ${statement}`, holds)),
      ...(kind === "receipt"
        ? [
            of(
              "offer_receipt.receipt_transaction",
              "The receipt names the transaction, or none",
              isNamed(payload, wanted),
            ),
          ]
        : []),
    ];
  } catch (error) {
    if (error instanceof InputError)
      return [of(`offer_receipt.${kind}_read`, `The ${kind} can be read: ${error.message}`, false)];
    throw error;
  }
}

/** A seller may omit the transaction. */
const isNamed = ({ transaction }: SignedReport["payload"], { settled = "" }: Wanted): boolean =>
  transaction === "" || String(transaction).toLowerCase() === settled.toLowerCase();

/** Fetches the seller's did:web document over the exam's own transport, at most once and only if needed. */
function oneDidDocument(visit: Visit): (kid: string) => Promise<string | undefined> {
  const fetched = async (url: string) => {
    const { answer } = await visit.ask({}, { url, method: "GET", body: null });
    return answer?.status === 200 ? new TextDecoder().decode(answer.body) : undefined;
  };
  const known = new Map<string, ReturnType<typeof fetched>>();
  return (kid) => {
    const url = documentUrlFor(visit.resource.url, kid);
    const document = known.get(url) ?? fetched(url);
    known.set(url, document);
    return document;
  };
}

function offerOf({ answer }: Exchange, terms: Terms): Json | null {
  if (answer === null) return null;
  const quote = readQuotes(answer).find(({ version }) => version === terms.version);
  const offers = infoOf(quote?.extensions).offers;
  if (quote === undefined || !Array.isArray(offers)) return null;
  const place = quote.accepts.findIndex((entry) => JSON.stringify(entry) === JSON.stringify(terms.accepted));
  return (offers.find((offer) => record(offer).acceptIndex === place) as Json | undefined) ?? null;
}

const infoOf = (extensions: unknown) => record(record(record(extensions)[EXTENSION]).info);
