import { needsCode } from "../../packages/escrow/src/signature-forms.ts";
import { isAccountSignature, undeployed } from "../payments/index.ts";
import { type AuthorizationType, authorizationDigest } from "../platform/chain/authorization.ts";
import { answered, type Completion } from "../platform/http/answer.ts";
import type { Intake, Sale } from "../platform/http/route.ts";
import { NETWORKS, type Network } from "../platform/networks.ts";
import type { Signer } from "../platform/signing/document.ts";
import type { Hex } from "../platform/wallet.ts";
import type { Asking, LookUp } from "./look-up.ts";
import type { AuthorizationReader } from "./reading.ts";
import { statementDocument, statementId } from "./statement.ts";
import { authorizationOf, questionAbout, type StatementRequest } from "./statement-request.ts";

interface StatementParts {
  readonly lookUp: LookUp;
  readonly readers: Readonly<Record<Network, AuthorizationReader>>;
  /** Spends a search for a client that has not paid yet. Returns false if the hourly budget is spent. */
  readonly maySearch: (client: string) => Promise<boolean>;
  readonly signer: Signer;
  readonly now: () => Date;
}

export type Statements = ReturnType<typeof createStatements>;

/** A transaction that must exist is searched for this long before the statement reports that it was not found. */
const PATIENCE_MS = 60_000;
/** Paid requests never wait for free ones. */
const PAID: Asking = { asker: null, maySearch: async () => true };
const TYPES: readonly AuthorizationType[] = ["TransferWithAuthorization", "ReceiveWithAuthorization"];

export const createStatements = (parts: StatementParts) => ({
  /** Looks up the status before anything is charged, because an unknown status is not sold. */
  admit: (request: StatementRequest, client: string): Promise<Intake<StatementRequest>> =>
    admit(parts, request, client).catch(() => ({ unavailable: "The chain is unreachable right now." })),
  /** Makes the one statement that a payment buys. */
  async sell({ input: request, payment, receivedAt }: Sale<StatementRequest>): Promise<Completion> {
    const { lookUp, signer, now } = parts;
    const status = await lookUp(questionAbout(request), PAID);
    const issuedAt = now();
    if (status.status === "used" && Math.abs(issuedAt.getTime() - receivedAt.getTime()) < PATIENCE_MS)
      throw new Error("a used authorization's transaction has not been found yet");
    const stated = { id: statementId(payment), request, status, issuer: signer.issuer, issuedAt };
    const text = await signer.signAsText(statementDocument(stated), issuedAt);
    return answered({ status: 200, body: Buffer.from(text), location: null });
  },
});

async function admit(
  parts: StatementParts,
  request: StatementRequest,
  client: string,
): Promise<Intake<StatementRequest>> {
  const signed = request.signature === null ? null : { ...request, signature: request.signature };
  const signedAs = signed === null ? null : await typeSigned(parts, signed, client);
  if (signed !== null && signedAs === null) return refused("signature", await whyUnsigned(parts, signed, client));
  const asking = { asker: client, maySearch: () => parts.maySearch(client) };
  const status = await parts.lookUp(questionAbout(request), asking);
  if (status.status !== "used") return { input: { ...request, signature: null, signedAs } };
  return status.search === "nowhere"
    ? refused("transaction", "expected the transaction that used the nonce, which our search has not found")
    : { unavailable: "The nonce was used, but its transaction has not been found yet." };
}

type SignedRequest = StatementRequest & { readonly signature: Hex };

async function whyUnsigned({ readers }: StatementParts, request: SignedRequest, client: string): Promise<string> {
  const { network, signature, authorization } = request;
  const isDeployed = !needsCode(signature) || (await readers[network].isDeployed(authorization.from, client));
  return isDeployed
    ? "expected the payer's signature over exactly this authorization in USDC's domain, or none"
    : `${undeployed(authorization.from, network)} Or omit the signature.`;
}

const refused = (path: string, message: string) => ({ refused: [{ path, message }] });

/** Returns the EIP-712 type that the payer signed, or null. USDC has two, which differ in who may submit them. */
async function typeSigned(
  { readers }: StatementParts,
  request: SignedRequest,
  client: string,
): Promise<AuthorizationType | null> {
  const { signature } = request;
  const { from: payer } = request.authorization;
  const digestAs = (type: AuthorizationType) =>
    authorizationDigest(authorizationOf(request), NETWORKS[request.network], type);
  for (const type of TYPES) if (isAccountSignature(payer, digestAs(type), signature)) return type;
  for (const type of TYPES)
    if (await readers[request.network].verifyContractSignature({ payer, digest: digestAs(type), signature }, client))
      return type;
  return null;
}
