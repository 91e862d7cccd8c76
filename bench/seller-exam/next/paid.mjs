import { HTTPFacilitatorClient } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { withX402, x402ResourceServer } from "@x402/next";
import { NextResponse } from "next/server";

const server = new x402ResourceServer(new HTTPFacilitatorClient({ url: process.env.FACILITATOR_URL })).register(
  "eip155:8453",
  new ExactEvmScheme(),
);
const accepts = {
  scheme: "exact",
  price: "$0.001",
  network: "eip155:8453",
  payTo: "0x00000000000000000000000000000000000c0ffe",
};
let runs = 0;

/** A handler behind the stock wrapper, for a route of Next. */
export const paid = (description) =>
  withX402(async () => NextResponse.json({ poem: "rain on the roof", run: ++runs }), { accepts, description }, server);
