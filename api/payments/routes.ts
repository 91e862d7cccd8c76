import { json, optionalInQuery } from "../platform/http/answer.ts";
import { Problem } from "../platform/http/errors.ts";
import { type Listed, type Route, sold } from "../platform/http/route.ts";
import { mixedCaseBytes32 } from "../platform/http/schema.ts";
import type { Hex } from "../platform/wallet.ts";
import { type Receipts, receiptDocument } from "./receipt.ts";
import { RECEIPT } from "./schemas.ts";

export interface ReceiptRouteParts {
  /** The whole table, complete by the time the routes are called. */
  readonly routes: () => readonly Listed[];
  readonly receipts: Receipts;
  readonly baseUrl: string;
}

export const receiptRoutes = ({ receipts, routes, baseUrl }: ReceiptRouteParts): readonly Route[] => [
  {
    method: "GET",
    path: "/receipt",
    summary: "What a settlement paid for, by transaction hash",
    parameters: [
      optionalInQuery({
        name: "transaction",
        description: "The settlement's transaction hash; `tx` is an alias.",
        schema: mixedCaseBytes32,
      }),
      optionalInQuery({ name: "tx", description: "The same as `transaction`.", schema: mixedCaseBytes32 }),
    ],
    output: json(RECEIPT),
    problems: ["malformed_request", "not_found"],
    async handle(c) {
      const [transaction, alias] = [c.req.query("transaction"), c.req.query("tx")];
      const hash = (transaction ?? alias ?? "").toLowerCase();
      if (!/^0x[0-9a-f]{64}$/.test(hash) || (transaction !== undefined && alias !== undefined)) {
        throw new Problem("malformed_request", {
          detail: "The query parameter transaction must be a transaction hash: 0x and 64 hex digits, given once.",
        });
      }
      const [first, ...rest] = await receipts.byTransaction(hash as Hex);
      if (first === undefined) throw new Problem("not_found", { detail: `Transaction ${hash} settled no purchase.` });
      return c.json(
        receiptDocument([first, ...rest], baseUrl, (id) => sold(routes()).find((route) => route.id === id)),
      );
    },
  },
];
