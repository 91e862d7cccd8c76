import { type Address, bytesToHex, type LocalAccount, toHex } from "viem";
import { accept, type BuyerLimits, type OfferedTerms } from "./acceptable.ts";
import { authorizationOf } from "./authorization.ts";
import { boundSalt, contestPolicy } from "./contest-terms.ts";
import { parseAmount } from "./money.ts";
import { escrowAt, SCHEME } from "./terms.ts";

/** The payer: any viem account, or any other signer of typed data. */
export type Payer = Pick<LocalAccount, "address" | "signTypedData">;

export interface EscrowSchemeOptions {
  /** The maximum cost of one payment: US dollars like "0.10", or atomic units. */
  readonly maxAmount?: string | bigint;
  /** The escrow contracts you trust. If omitted, any contract that a merchant names is accepted, so set this. */
  readonly escrows?: readonly Address[];
}

/** Circle's USDC: the stock client's spending limits apply to it, in dollars. */
const USDC: Readonly<Record<string, string>> = {
  "eip155:8453": "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913",
  "eip155:84532": "0x036cbd53842c5426634e7929541ec2318f3dcf7e",
};

/**
 * The buyer's side of the x402 scheme "commerce", for
 * `new x402Client().register("eip155:*", new EscrowScheme(account))`. The client's own spending limits apply (1 USD per
 * payment by default).
 */
export class EscrowScheme {
  readonly scheme = SCHEME;
  readonly #payer: Payer;
  readonly #limits: BuyerLimits;

  /** @throws TypeError for an invalid `maxAmount` */
  constructor(payer: Payer, { maxAmount, escrows }: EscrowSchemeOptions = {}) {
    this.#payer = payer;
    this.#limits = { maxAmount: maxAmount === undefined ? undefined : parseAmount(maxAmount), escrows };
  }

  /**
   * Called by the client to find assets that count in dollars; it refuses all others unless its `spendControls` allow
   * them.
   */
  findDefaultAsset(asset: string, network: string): { asset: string; decimals: number; symbol: string } | undefined {
    return USDC[network] === asset.toLowerCase() ? { asset, decimals: 6, symbol: "USDC" } : undefined;
  }

  /**
   * Signs a payment: USDC's `ReceiveWithAuthorization` to the escrow, whose nonce binds every term.
   * @throws RefusedTerms for terms a buyer must not sign
   */
  async createPaymentPayload(
    x402Version: number,
    offered: OfferedTerms,
  ): Promise<{ x402Version: number; payload: Record<string, unknown> }> {
    if (x402Version !== 2)
      throw new Error(`Escrowed sales require x402 version 2; this one uses version ${x402Version}.`);
    const { chainId, escrow, token, info, contest } = accept(offered, this.#limits, Date.now());
    const saltNonce = bytesToHex(crypto.getRandomValues(new Uint8Array(32)));
    const salt =
      contest === undefined ? saltNonce : toHex(boundSalt(contestPolicy(contest), BigInt(saltNonce)), { size: 32 });
    const complete = { ...info, payer: this.#payer.address, salt: BigInt(salt) };
    const typedData = authorizationOf({ chainId, ...escrowAt(escrow), usdc: token }, complete);
    const signature = await this.#payer.signTypedData(typedData);
    const { value, validAfter, validBefore, ...authorization } = typedData.message;
    return {
      x402Version,
      payload: {
        authorization: {
          ...authorization,
          value: String(value),
          validAfter: String(validAfter),
          validBefore: String(validBefore),
        },
        signature,
        paymentInfo: { ...complete, maxAmount: String(info.maxAmount), salt },
        ...(contest === undefined ? {} : { saltNonce }),
      },
    };
  }
}
