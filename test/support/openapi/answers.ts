import type { Contract, Exchange } from "./openapi.ts";

const PATIENCE_MS = 5_000;
/** Media types without a schema, such as pages and streams, are not read. */
const UNREAD = /^(text|image)\//;

/** The origins of the services that this file has started. */
const services = new Set<string>();
/** Contracts by the origin of a service. */
const published = new Map<string, Promise<Contract | null>>();
/** Contracts by the document without its addresses, because services of one kind share what is compiled. */
const contracts = new Map<string, Contract>();
const underway = new Set<Promise<void>>();
const complaints: string[] = [];

/**
 * From now on, checks every response from this service, to any client in this process, against its own `/openapi.json`.
 */
export const checkAgainstDescription = (url: string): void => void services.add(new URL(url).origin);

/** Forgets a stopped service, because another server may soon use its port. */
export function forgetService(url: string): void {
  const { origin } = new URL(url);
  services.delete(origin);
  published.delete(origin);
}

/** @throws if a response since the last call did not match the description */
export async function expectDescribed(): Promise<void> {
  while (underway.size > 0) await Promise.all(underway);
  const found = complaints.splice(0);
  if (found.length > 0) throw new Error(found.join("\n"));
}

/** Checks an exchange against the description of the service that responded, if this file started it. */
export async function hold(exchange: Exchange): Promise<void> {
  const contract = await contractAt(exchange.url);
  if (contract !== null) judge(contract, exchange);
}

const plainFetch = globalThis.fetch;

/**
 * A `fetch` that checks its responses and returns them unchanged. A body is checked once it is complete, and never if
 * it is lost.
 */
export const heldFetch: typeof fetch = async (input, init) => {
  // A server's library may have replaced the Request class.
  const { url, method } =
    typeof input === "string" || input instanceof URL ? { url: `${input}`, method: "GET" } : input;
  const response = await plainFetch(input, init);
  const contract = await contractAt(url);
  if (contract === null) return response;
  const { status, headers } = response;
  const contentType = headers.get("content-type");
  const exchange = { method: init?.method?.toUpperCase() ?? method, url, status, contentType };
  if (response.body === null) judge(contract, { ...exchange, text: "" });
  else if (contentType !== null && UNREAD.test(contentType)) judge(contract, { ...exchange, text: "not read" });
  else later(bodyOf(response.clone()), (text) => judge(contract, { ...exchange, text }));
  return response;
};

function later(body: Promise<string | null>, judgement: (text: string) => void): void {
  const work = body.then((text) => (text === null ? undefined : judgement(text))).finally(() => underway.delete(work));
  underway.add(work);
}

/** Null if the client or the service closes the connection, or if the end does not come. */
function bodyOf(response: Response): Promise<string | null> {
  const late = new Promise<null>((resolve) => setTimeout(resolve, PATIENCE_MS, null).unref());
  return Promise.race([response.text().catch(() => null), late]);
}

function judge(contract: Contract, exchange: Exchange): void {
  const complaint = contract.complaint(exchange);
  if (complaint !== null) complaints.push(`${complaint}\n${exchange.text.slice(0, 2_000)}`);
}

/** Null for a server that is not one of this file's services. */
async function contractAt(url: string): Promise<Contract | null> {
  const { origin } = new URL(url);
  if (!services.has(origin)) return null;
  const asked = published.get(origin) ?? readContract(origin);
  published.set(origin, asked);
  return asked.catch(() => {
    published.delete(origin);
    // The process was killed, frozen, or flooded meanwhile. Its siblings have the same description.
    return [...contracts.values()].at(-1) ?? null;
  });
}

async function readContract(origin: string): Promise<Contract | null> {
  const answer = await plainFetch(`${origin}/openapi.json`, { signal: AbortSignal.timeout(PATIENCE_MS) });
  const text = await answer.text();
  if (answer.status !== 200) {
    complaints.push(
      `GET /openapi.json ${answer.status}: the service does not describe itself\n${text.slice(0, 2_000)}`,
    );
    return null;
  }
  // Most files never call a service and need no validator.
  const { contractOf } = await import("./openapi.ts");
  const document = JSON.parse(text) as Parameters<typeof contractOf>[0];
  const key = text.replaceAll(document.servers[0].url, "");
  const contract = contracts.get(key) ?? contractOf(document);
  contracts.set(key, contract);
  return contract;
}
