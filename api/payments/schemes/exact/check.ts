import { formatUsd } from "../../../platform/money.ts";
import { NETWORKS } from "../../../platform/networks.ts";
import type { Terms } from "../../../platform/http/route.ts";
import { parseAddress } from "../../../platform/wallet.ts";
import type { ClaimedTerms, PresentedPayment } from "../../scheme.ts";

type Checked = Pick<PresentedPayment, "version" | "authorization" | "claimed">;

/** What is wrong with a payment's signed terms, as one sentence for its 402; null if they are fine. */
export function mismatch(payment: Checked, terms: Terms): string | null {
  const { authorization: signed, claimed } = payment;
  const contradiction = claimError(claimed, payment, terms);
  if (contradiction !== null) return contradiction;
  if (signed.to !== terms.payTo) return `The authorization pays ${signed.to}; it must pay ${terms.payTo}.`;
  if (signed.from === terms.payTo) return "The payer is the receiving address itself; pay from a different wallet.";
  if (signed.value !== terms.value) {
    const { money } = NETWORKS[terms.network];
    return `The authorization is for ${signed.value} atomic units (${formatUsd(signed.value)} ${money}); it must be for exactly ${terms.value} (${formatUsd(terms.value)} ${money}).`;
  }
  return null;
}

/** Fields the client leaves out are ignored; those it states must match what it signed. */
function claimError(claimed: ClaimedTerms, { version, authorization }: Checked, terms: Terms): string | null {
  const { id, key, usdc } = NETWORKS[terms.network];
  const network = version === "v1" ? key : id;
  if (claimed.scheme !== undefined && claimed.scheme !== "exact")
    return `The payment claims the scheme ${claimed.scheme}; this route accepts exact.`;
  if (claimed.network !== undefined && claimed.network !== network)
    return `The payment claims the network ${claimed.network}; this route accepts ${network}.`;
  if (claimed.asset !== undefined && parseAddress(claimed.asset) !== usdc.address) {
    return `The payment claims the asset ${claimed.asset}; this route accepts USDC at ${usdc.address}.`;
  }
  if (claimed.amount !== undefined && claimed.amount !== authorization.value.toString()) {
    return `The payment claims ${claimed.amount} atomic units, but the authorization is for ${authorization.value}.`;
  }
  if (claimed.payTo !== undefined && parseAddress(claimed.payTo) !== authorization.to) {
    return `The payment claims to pay ${claimed.payTo}, but the authorization pays ${authorization.to}.`;
  }
  return null;
}
