import {
  type Address,
  createWalletClient,
  encodeAbiParameters,
  type Hex,
  http,
  keccak256,
  parseAbi,
  sha256,
  stringToBytes,
  zeroAddress,
} from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import {
  decodeHeader,
  encodeHeader,
  newBuyer,
  type Pays,
  signFor,
  startSaleScene,
  statusOf,
} from "../../support/escrow/sale.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";

// A merchant written from docs/escrow-protocol.md with a signature library and nothing from our package.

const scene = await forFile(startSaleScene());
const { chain, service } = scene;
const account = privateKeyToAccount(generatePrivateKey());
await chain.setBalance(account.address, 10n ** 18n);

interface Contract {
  readonly scheme: Pays;
  readonly address: Address;
  readonly custody: Address;
  readonly collector: Address;
  readonly usdc: Address;
  readonly fee_recipient: Address;
}

const { contracts, forward } = JSON.parse(await (await fetch(`${service.url}/escrow`)).text()) as {
  contracts: readonly Contract[];
  forward: { url: string; domain: { name: string; version: string } };
};
const TYPEHASH = keccak256(
  stringToBytes(
    "PaymentInfo(address operator,address payer,address receiver,address token,uint120 maxAmount,uint48 preApprovalExpiry,uint48 authorizationExpiry,uint48 refundExpiry,uint16 minFeeBps,uint16 maxFeeBps,address feeReceiver,uint256 salt)",
  ),
);
const TERMS = [
  ...["bytes32", "address", "address", "address", "address", "uint120", "uint48", "uint48", "uint48", "uint16"],
  ...["uint16", "address", "uint256"],
].map((type) => ({ type }));
const ABI = parseAbi([
  "struct PaymentInfo { address operator; address payer; address receiver; address token; uint120 maxAmount; uint48 preApprovalExpiry; uint48 authorizationExpiry; uint48 refundExpiry; uint16 minFeeBps; uint16 maxFeeBps; address feeReceiver; uint256 salt; }",
  "function authorize(PaymentInfo info, uint256 amount, address collector, bytes signature)",
]);

function offered({ scheme, address, custody, usdc, fee_recipient }: Contract) {
  const now = Math.ceil(Date.now() / 1000);
  const fee = { minFeeBps: 100, maxFeeBps: 100 };
  const extra =
    scheme === "auth-capture"
      ? {
          ...{ authCaptureEscrow: custody, captureAuthorizer: address, feeRecipient: fee_recipient },
          ...{ operatorType: "custom", paymentFlow: "escrow", captureMode: "deferred", assetTransferMethod: "eip3009" },
          ...{ captureDeadline: now + 86_520, refundDeadline: now + 86_520 },
        }
      : {
          ...{ escrowAddress: address, operatorAddress: address, tokenCollector: address, feeReceiver: fee_recipient },
          ...{ settlementMethod: "authorize", preApprovalExpirySeconds: now + 120 },
          ...{ authorizationExpirySeconds: now + 86_400, refundExpirySeconds: now + 172_800 },
        };
  return {
    ...{
      scheme,
      network: "eip155:8453",
      amount: "100000",
      asset: usdc,
      payTo: account.address,
      maxTimeoutSeconds: 120,
    },
    extra: { name: "USD Coin", version: "2", ...fee, ...extra },
  };
}

const shop = {
  fetch: (async () => {
    const resource = { url: "http://shop.example/haiku", description: "", mimeType: "application/json" };
    const terms = { x402Version: 2, error: "", resource, accepts: contracts.map(offered), extensions: {} };
    return new Response("", { status: 402, headers: { "payment-required": encodeHeader(terms) } });
  }) as typeof fetch,
};

test.each<Pays>(["auth-capture", "commerce"])("A merchant that follows the page is paid by %s", async (pays) => {
  const contract = contracts.find(({ scheme }) => scheme === pays) ?? expect.fail(`There is no ${pays}.`);
  const buyer = await newBuyer(chain);
  const { accepted, payload } = decodeHeader(await signFor(shop, buyer, { url: "http://shop.example/haiku", pays }));
  const { authorization, signature, paymentInfo, salt } = payload;
  const info = {
    ...{ operator: contract.address, payer: authorization.from, receiver: account.address, token: contract.usdc },
    ...{ maxAmount: 100_000n, preApprovalExpiry: Number(authorization.validBefore) },
    authorizationExpiry: Number(paymentInfo?.authorizationExpiry ?? accepted.extra.captureDeadline),
    refundExpiry: Number(paymentInfo?.refundExpiry ?? accepted.extra.refundDeadline),
    ...{ minFeeBps: 100, maxFeeBps: 100, feeReceiver: contract.fee_recipient },
    salt: BigInt(paymentInfo?.salt ?? salt),
  };
  const hash = (payer: Address): Hex => {
    const terms = encodeAbiParameters(TERMS, [TYPEHASH, ...Object.values({ ...info, payer })]);
    const place = [{ type: "uint256" }, { type: "address" }, { type: "bytes32" }] as const;
    return keccak256(encodeAbiParameters(place, [8453n, contract.custody, keccak256(terms)]));
  };
  const paymentId = hash(info.payer);
  expect(authorization).toMatchObject({ value: "100000", validAfter: "0", nonce: hash(zeroAddress) });
  expect(authorization.to.toLowerCase()).toBe(contract.collector);

  const wallet = createWalletClient({ account, transport: http(chain.rpcUrl) });
  const transaction = await wallet.writeContract({
    ...{ address: contract.address, abi: ABI, functionName: "authorize", chain: null, gas: 250_000n },
    args: [info, info.maxAmount, contract.collector, signature],
  });
  expect((await chain.client.waitForTransactionReceipt({ hash: transaction })).status).toBe("success");

  const body = '{"haiku":"An old silent pond"}';
  const types = {
    Delivery: [
      ...[
        ["paymentId", "bytes32"],
        ["status", "uint16"],
        ["bodySha256", "bytes32"],
        ["contentType", "string"],
      ],
      ...[
        ["contentEncoding", "string"],
        ["contestSeconds", "uint32"],
        ["conditionsSha256", "bytes32"],
      ],
    ].map(([name = "", type = ""]) => ({ name, type })),
  };
  const { name, version } = forward.domain;
  const typed = {
    domain: { name, version, chainId: 8453, verifyingContract: contract.address },
    types,
    primaryType: "Delivery" as const,
    message: {
      ...{ paymentId, status: 200, bodySha256: sha256(stringToBytes(body)), contentType: "application/json" },
      ...{ contentEncoding: "", contestSeconds: 0, conditionsSha256: `0x${"00".repeat(32)}` },
    },
  };
  const answer = await fetch(forward.url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      paymentInfo: { ...info, maxAmount: String(info.maxAmount), salt: String(info.salt) },
      response: { status: 200, headers: { "content-type": "application/json" }, body },
      signature: await account.signTypedData(typed),
      delivery_version: 1,
    }),
  });
  expect([answer.status, await answer.json()]).toMatchObject([200, { decision: "release" }]);
  await eventually(() => statusOf(scene, paymentId, pays), "released" as const);
});
