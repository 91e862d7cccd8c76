import { text } from "node:stream/consumers";
import {
  type Hex,
  type LocalAccount,
  parseTransaction,
  serializeTransaction,
  type TransactionSerializableEIP1559,
  type TransactionSerializedEIP1559,
} from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterEach, describe, expect, test } from "vitest";
import { createAccount } from "../../../api/platform/chain/accounts.ts";
import { authorizationTypedData } from "../../../api/platform/chain/authorization.ts";
import { openAccount } from "../../../api/platform/chain/remote-signer.ts";
import { NETWORKS } from "../../../api/platform/networks.ts";
import type { Address } from "../../../api/platform/wallet.ts";
import { buyVerdict, handIn } from "../../support/arbiter/scene.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { serveHttp } from "../../support/http-server.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { chargedOnce, settlements } from "../../support/payments/on-chain.ts";
import { post, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { ARBITER_KEY } from "../../support/service/environment.ts";
import { RELAYER, startService } from "../../support/service/service.ts";

/** The different method names of nodes, Web3Signer, and clef. */
const DIALECTS = {
  node: { transaction: "eth_signTransaction", typedData: "eth_signTypedData_v4" },
  web3signer: { transaction: "eth_signTransaction", typedData: "eth_signTypedData" },
  clef: { transaction: "account_signTransaction", typedData: "account_signTypedData" },
} as const;

/** A signer that signs every request, with every fault that a signer can have. Real signers are in the slow tests. */
async function startSigner(accounts: readonly LocalAccount[], dialect: keyof typeof DIALECTS = "node") {
  const state = {
    /** Replaces the result of a signature. Null if the signer is honest. */
    fault: null as ((result: Hex) => unknown) | null,
    isDown: false,
    asked: 0,
  };
  const names = DIALECTS[dialect];
  const sign = async (method: string, params: readonly unknown[]): Promise<Hex | null> => {
    const of = (address: unknown) => {
      const account = accounts.find((one) => one.address.toLowerCase() === String(address).toLowerCase());
      if (account === undefined) throw new Error("no such account");
      return account;
    };
    if (method === names.transaction) {
      const [{ from, ...call }] = params as [Record<string, Hex>];
      const [gas, value, maxFeePerGas, maxPriorityFeePerGas] = [
        ...[call.gas, call.value, call.maxFeePerGas, call.maxPriorityFeePerGas].map((one) => BigInt(one ?? 0)),
      ] as [bigint, bigint, bigint, bigint];
      return of(from).signTransaction({
        ...{ type: "eip1559", to: call.to, data: call.data, gas, value, maxFeePerGas, maxPriorityFeePerGas },
        ...{ nonce: Number(call.nonce), chainId: Number(call.chainId) },
      });
    }
    if (method !== names.typedData) return null;
    const [address, given] = params;
    const isText = dialect === "web3signer";
    if ((typeof given === "string") !== isText) throw new Error("invalid params");
    const { EIP712Domain: _, ...types } = (isText ? JSON.parse(given as string) : given).types;
    return of(address).signTypedData({ ...(isText ? JSON.parse(given as string) : given), types });
  };
  const server = await serveHttp(async (request, answer) => {
    state.asked++;
    if (state.isDown) return void request.destroy();
    const { id, method, params } = JSON.parse(await text(request));
    const outcome = await sign(method, params).then(
      (result) =>
        result === null
          ? { error: { code: -32601, message: `the method ${method} does not exist` } }
          : { result: state.fault === null ? result : state.fault(result) },
      (error: Error) => ({ error: { code: -32000, message: error.message } }),
    );
    answer.setHeader("content-type", "application/json").end(JSON.stringify({ jsonrpc: "2.0", id, ...outcome }));
  });
  return { ...server, state };
}

const [account, arbiter] = [privateKeyToAccount(RELAYER.key), privateKeyToAccount(ARBITER_KEY)];
const signer = await forFile(startSigner([account, arbiter]));
afterEach(() => Object.assign(signer.state, { fault: null, isDown: false }));

const keyAt = (...signerUrls: readonly string[]) => ({ address: RELAYER.address as Address, signerUrls });
const TRANSACTION: TransactionSerializableEIP1559 = {
  ...{ type: "eip1559", chainId: 8453, nonce: 7, gas: 90_000n, value: 0n, data: "0xe3ee160e" },
  ...{ to: NETWORKS["eip155:8453"].usdc.address, maxFeePerGas: 3n * 10n ** 9n, maxPriorityFeePerGas: 10n ** 6n },
};
const authorization = { from: RELAYER.address, to: RELAYER.address, value: 1n, validAfter: 0n, validBefore: 2n ** 40n };
const TYPED = authorizationTypedData({ ...authorization, nonce: `0x${"07".repeat(32)}` }, NETWORKS["eip155:8453"]);
const local = createAccount(RELAYER.key);

describe("A remote signer", () => {
  test.each(Object.keys(DIALECTS) as (keyof typeof DIALECTS)[])(
    "A remote signer that speaks the %s dialect returns the same signatures as the key",
    async (dialect) => {
      const own = await startSigner([account], dialect);
      const remote = openAccount(keyAt(own.url));
      for (let time = 0; time < 2; time++) {
        expect(await remote.signTransaction(TRANSACTION)).toBe(await local.signTransaction(TRANSACTION));
        expect(await remote.signTypedData(TYPED)).toBe(await local.signTypedData(TYPED));
      }
      // Methods that it lacks are tried only the first time.
      const before = own.state.asked;
      await remote.signTypedData(TYPED);
      expect(own.state.asked - before).toBe(1);
      own.stop();
    },
  );

  test("The next of several signers is used when one is down or refuses", async () => {
    const strange = await startSigner([]);
    const remote = openAccount(keyAt("http://127.0.0.1:9", strange.url, signer.url));
    expect(await remote.signTransaction(TRANSACTION)).toBe(await local.signTransaction(TRANSACTION));
    strange.stop();
  });

  const HALF = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
  const changed = (change: Partial<TransactionSerializableEIP1559>) => (raw: Hex) => {
    const { r, s, yParity, ...transaction } = parseTransaction(raw as TransactionSerializedEIP1559);
    return serializeTransaction(
      { ...transaction, type: "eip1559", ...change },
      {
        r: r as Hex,
        s: s as Hex,
        yParity: yParity as 0 | 1,
      },
    );
  };
  const high = (signature: Hex) => {
    const s = HALF - BigInt(`0x${signature.slice(66, 130)}`);
    return `${signature.slice(0, 66)}${s.toString(16).padStart(64, "0")}${signature.endsWith("1b") ? "1c" : "1b"}`;
  };

  test.each([
    ["another recipient", changed({ to: RELAYER.address })],
    ["another nonce", changed({ nonce: 8 })],
    ["a value", changed({ value: 1n })],
    ["a higher fee", changed({ maxFeePerGas: 4n * 10n ** 9n })],
    ["another chain", changed({ chainId: 84532 })],
    ["bytes at its end", (raw: Hex) => `${raw}00`],
    ["an incomplete encoding", () => "0x02"],
    ["no data at all", () => null],
  ])("A signed transaction with %s is rejected", async (_, fault) => {
    signer.state.fault = fault;
    await expect(openAccount(keyAt(signer.url)).signTransaction(TRANSACTION)).rejects.toThrow(
      `a transaction other than the requested one, or not ${RELAYER.address}'s`,
    );
  });

  test("A signature by another key or in a form that contracts refuse is rejected", async () => {
    const other = createAccount(generatePrivateKey());
    const remote = openAccount(keyAt(signer.url));
    const [raw, signature] = [await other.signTransaction(TRANSACTION), await other.signTypedData(TYPED)];
    signer.state.fault = () => raw;
    await expect(remote.signTransaction(TRANSACTION)).rejects.toThrow("a transaction other");
    for (const fault of [() => signature, high, (own: Hex) => own.slice(0, 66)]) {
      signer.state.fault = fault;
      await expect(remote.signTypedData(TYPED)).rejects.toThrow(`no signature of ${RELAYER.address}`);
    }
    signer.state.fault = (own) => `${own.slice(0, 130)}${own.endsWith("1b") ? "00" : "01"}`;
    expect(await remote.signTypedData(TYPED)).toBe(await local.signTypedData(TYPED));
  });
});

describe("A service whose keys are at a remote signer", async () => {
  const chain = await forFile(startTestChain());
  const service = await forFile(
    startService({
      chain,
      config: {
        facilitator: { key: keyAt(signer.url) },
        arbiterKey: { address: arbiter.address.toLowerCase() as Address, signerUrls: [signer.url] },
      },
    }),
  );

  test("Payments get 503 and are not charged while the signer is down, and the same header settles once it is back", async () => {
    const signed = await signPayment(await newPayer(chain));
    const pay = () => post(`${service.url}/test/basic`, v2(signed));
    signer.state.isDown = true;
    const answer = await pay();
    expectProblem(answer, 503, "payment_pending");
    expect(answer.body.detail).toMatch(
      /not sent, and nothing was charged, because the account that sends payments cannot sign/,
    );
    expect(answer.headers.get("retry-after")).toBe("10");
    expect(await settlements(chain, signed.authorization.from)).toEqual([]);
    signer.state.isDown = false;
    await expect.poll(async () => (await pay()).status).toBe(200);
    await chargedOnce(chain, signed);
  });

  test("A paid verdict is delivered once the signer is back", async () => {
    const conditions = { payload_text: "x", expected_sha256: "0".repeat(64) };
    const payer = await newPayer(chain);
    // The signer signs the payment's transaction but not the verdict.
    signer.state.fault = (result) => (result.length > 132 ? result : null);
    const claim = { category: "payload-hash", conditions };
    const { answer, headers } = await buyVerdict(service, payer, claim);
    const again = () => handIn(service, claim, headers);
    expectProblem(answer, 503, "payment_pending");
    signer.state.fault = null;
    await expect.poll(async () => (await again()).status).toBe(200);
    expect(JSON.stringify((await again()).body)).toContain(arbiter.address.toLowerCase());
  });
});
