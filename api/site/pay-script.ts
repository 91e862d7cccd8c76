/** A payment signed on `/pay` is valid for this many seconds, because a hardware wallet takes minutes. */
export const PAY_WINDOW_SECONDS = 600;

/**
 * The browser script of `/pay`. It finds wallets (EIP-6963, and `window.ethereum`), requests the terms, has the wallet
 * sign the page's own terms (EIP-3009 as EIP-712 typed data), and sends the payment. Offered terms that differ from the
 * page's are refused before the wallet is involved. The validity window starts at the server's time, because a
 * browser's clock may be wrong. A signed payment is resent unchanged until it gets a response. The wallet signs again
 * only if the payment expired before it was sent, or the service reported that it expired.
 */
export const PAY_SCRIPT = `"use strict";
const terms = document.getElementById("pay-box").dataset, own = JSON.parse(terms.offer);
const list = document.getElementById("wallets"), progress = document.getElementById("progress"), result = document.getElementById("result");
const wallets = new Map();
const RESEND_MS = 2000, RESENDS = 30;
const WINDOW_SECONDS = ${PAY_WINDOW_SECONDS}, LEAST_SECONDS = 30, MOST_SIGNATURES = 3;
const COMPARED = { network: "network", asset: "token", payTo: "recipient", amount: "amount", maxTimeoutSeconds: "timeout" };
let isBusy = false, signed = null;

const show = (text, tone) => { progress.textContent = text; progress.className = "state " + (tone || "gray"); };
const fromBase64 = (text) => JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(text), (c) => c.charCodeAt(0))));
const toBase64 = (value) => btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(value))));
const hex = (bytes) => "0x" + Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

class Refusal extends Error {}

function add(name, provider) {
  if ([...wallets.values()].includes(provider)) return;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "button";
  button.textContent = "Pay " + terms.price + " USDC with " + name;
  button.addEventListener("click", () => run(provider));
  wallets.set(button, provider);
  list.append(button);
  document.getElementById("none").hidden = true;
}

addEventListener("eip6963:announceProvider", ({ detail }) => add(detail.info.name, detail.provider));
dispatchEvent(new Event("eip6963:requestProvider"));
setTimeout(() => { if (wallets.size === 0 && window.ethereum) add("this browser’s wallet", window.ethereum); }, 300);

async function run(provider) {
  if (isBusy) return;
  isBusy = true;
  result.hidden = true;
  for (const button of wallets.keys()) button.disabled = true;
  try {
    for (let signatures = 1; ; signatures += 1) {
      signed = signed || (await sign(provider, signatures > 1));
      if (await send()) return;
      if (signatures === MOST_SIGNATURES) throw new Refusal("The payment expired before it was sent. Nothing was paid. Sign it within ten minutes.");
    }
  } catch (error) {
    show(error instanceof Refusal ? error.message : explain(error), "fail");
  } finally {
    isBusy = false;
    for (const button of wallets.keys()) button.disabled = false;
  }
}

function explain(error) {
  if (error && error.code === 4001) return "You declined in your wallet. Nothing was signed or paid.";
  if (error && error.code === -32002) return "Your wallet has a pending request. Open it, respond, then try again.";
  return "Wallet error: " + ((error && error.message) || String(error)) + ". Nothing was paid.";
}

async function offered() {
  const answer = await fetch(terms.path, { method: "POST" }).catch(() => {
    throw new Refusal("The service is not responding. Nothing was signed.");
  });
  const header = answer.headers.get("payment-required");
  if (answer.status !== 402 || !header) throw new Refusal("The test is temporarily unavailable (" + answer.status + "). Nothing was signed.");
  const challenge = readable(header);
  const served = Date.parse(answer.headers.get("date")), at = Date.now();
  const now = () => ((Number.isNaN(served) ? at : served) + Date.now() - at) / 1000;
  const exact = challenge.accepts.filter((one) => one && one.scheme === own.scheme);
  const offer = exact.find((one) => !difference(one));
  if (offer) return { challenge, offer, now };
  const detail = exact.length > 0 ? difference(exact[0]) : "no scheme " + own.scheme;
  throw new Refusal("The terms differ from those on this page: " + detail + ". Nothing was signed. Reload the page; if this message comes back, do not pay here.");
}

function readable(header) {
  try {
    const challenge = fromBase64(header);
    if (Array.isArray(challenge.accepts)) return challenge;
  } catch {}
  throw new Refusal("The service’s terms cannot be read. Nothing was signed.");
}

function difference(offer) {
  const same = (name) => String(offer[name]).toLowerCase() === String(own[name]).toLowerCase();
  const name = Object.keys(COMPARED).find((one) => !same(one));
  return name && COMPARED[name] + " " + String(offer[name]).slice(0, 80) + " instead of " + own[name];
}

async function sign(provider, again) {
  show("Requesting the terms …");
  const { challenge, offer, now } = await offered();
  show("Connect your wallet and choose the account to pay from.");
  const [from] = await provider.request({ method: "eth_requestAccounts" });
  if (!from) throw new Refusal("Your wallet returned no account. Nothing was signed.");
  await onChain(provider);
  show((again ? "That took longer than ten minutes, so the payment expired and was not sent. Sign it again: " : "Sign the payment in your wallet: ") + terms.price + " USDC to " + own.payTo + ". No gas is needed.");
  const validBefore = Math.floor(now()) + WINDOW_SECONDS;
  const authorization = {
    from, to: own.payTo, value: own.amount, validAfter: "0",
    validBefore: String(validBefore), nonce: hex(crypto.getRandomValues(new Uint8Array(32))),
  };
  const field = (pair) => ({ type: pair.split(" ")[0], name: pair.split(" ")[1] });
  const typed = {
    domain: { name: own.extra.name, version: own.extra.version, chainId: Number(terms.chainId), verifyingContract: own.asset },
    types: {
      EIP712Domain: ["string name", "string version", "uint256 chainId", "address verifyingContract"].map(field),
      TransferWithAuthorization: ["address from", "address to", "uint256 value", "uint256 validAfter", "uint256 validBefore", "bytes32 nonce"].map(field),
    },
    primaryType: "TransferWithAuthorization",
    message: authorization,
  };
  const signature = await provider.request({ method: "eth_signTypedData_v4", params: [from, JSON.stringify(typed)] });
  const payment = { x402Version: 2, resource: challenge.resource, accepted: offer, payload: { signature, authorization } };
  return { header: toBase64(payment), isOver: () => now() > validBefore - LEAST_SECONDS, isSent: false };
}

async function onChain(provider) {
  const chainId = "0x" + Number(terms.chainId).toString(16);
  if (Number(await provider.request({ method: "eth_chainId" })) === Number(chainId)) return;
  show("Switch your wallet to " + terms.chainName + ".");
  const change = { method: "wallet_switchEthereumChain", params: [{ chainId }] };
  try {
    await provider.request(change);
  } catch (error) {
    const code = error && (error.code === -32603 && error.data && error.data.originalError ? error.data.originalError.code : error.code);
    if (code !== 4902) throw error;
    await provider.request({ method: "wallet_addEthereumChain", params: [{
      chainId, chainName: terms.chainName, rpcUrls: [terms.rpcUrl], blockExplorerUrls: [terms.explorer],
      nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
    }] });
    await provider.request(change);
  }
  if (Number(await provider.request({ method: "eth_chainId" })) !== Number(chainId))
    throw new Refusal("Your wallet is still on another network. Switch it to " + terms.chainName + ", then try again. Nothing was signed.");
}

/** Whether the payment was answered; false if it expired unused. */
async function send() {
  if (signed.isOver() && !signed.isSent) return expired();
  show("Paying …");
  signed.isSent = true;
  for (let time = 0; time < RESENDS; time += 1) {
    const answer = await fetch(terms.path, { method: "POST", headers: { "PAYMENT-SIGNATURE": signed.header } }).catch(() => null);
    const body = answer && (await answer.json().catch(() => null));
    if (answer && answer.status === 200) { signed = null; certified(body); return true; }
    if (answer && answer.status === 402 && signed.isOver()) return expired();
    if (answer && answer.status < 500 && answer.status !== 429) {
      signed = null;
      throw new Refusal("Payment rejected, nothing was charged: " + ((body && (body.error || body.detail)) || answer.status) + ".");
    }
    show("Signed. Waiting for settlement; the same payment is being resent …");
    await wait(RESEND_MS);
  }
  throw new Refusal("Signed, but there is no response yet. The button resends the same payment, and you are charged only once.");
}

function expired() {
  signed = null;
  return false;
}

function certified(certificate) {
  show("Paid and certified: " + certificate.level + ".", certificate.verdict === "pass" ? "pass" : "fail");
  document.getElementById("cert-link").href = new URL(certificate.cert_url).pathname;
  const badge = document.getElementById("cert-badge");
  badge.src = new URL(certificate.badge_url).pathname;
  badge.alt = "Badge: " + certificate.level;
  document.getElementById("cert-wallet").textContent = certificate.wallet;
  document.getElementById("cert-markdown").textContent = certificate.badge_markdown;
  result.hidden = false;
  list.hidden = true;
}`;
