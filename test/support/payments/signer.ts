import { text } from "node:stream/consumers";
import type { Hex, LocalAccount } from "viem";
import { serveHttp } from "../http-server.ts";

/** The different method names of nodes, Web3Signer, and clef. */
export const DIALECTS = {
  node: { transaction: "eth_signTransaction", typedData: "eth_signTypedData_v4" },
  web3signer: { transaction: "eth_signTransaction", typedData: "eth_signTypedData" },
  clef: { transaction: "account_signTransaction", typedData: "account_signTypedData" },
} as const;

/** A signer that signs every request, with every fault that a signer can have. Real signers are in the slow tests. */
export async function startSigner(accounts: readonly LocalAccount[], dialect: keyof typeof DIALECTS = "node") {
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
