import { readFileSync } from "node:fs";
import { type Address, getAddress } from "viem";
import { expect, test } from "vitest";
import { operatorAbi } from "../../contracts/abi.ts";
import { COMMERCE_PAYMENTS } from "../../contracts/commerce-payments.ts";
import { deployOperator } from "../../scripts/deploy-operator.ts";
import { installCommercePayments } from "../../scripts/embedded/commerce-payments.ts";
import { devAccount } from "../../scripts/embedded/dev-accounts.ts";
import { prepareDeployment } from "./deployment-ground.ts";

const { escrow, collector } = COMMERCE_PAYMENTS;
/** An address that is no escrow's. */
const OTHER = devAccount(0).address;

const { settings, roles, client, sent, hardhat } = prepareDeployment("localBaseSepolia");
const deploy = async () => deployOperator(await hardhat(), settings);
/** Code that answers every call with this word. */
const answering = (address: Address) => `0x73${address.slice(2)}5f5260205ff3` as const;

test("a chain without base/commerce-payments is refused", async () => {
  await expect(deploy()).rejects.toThrow(`base/commerce-payments is not at ${escrow}`);
  expect(await sent()).toBe(0);
});

test("an escrow with other hashes is refused", async () => {
  await installCommercePayments(client());
  const bytecode = await client().getCode({ address: escrow });
  await client().setCode({ address: escrow, bytecode: answering(escrow) });
  await expect(deploy()).rejects.toThrow("PAYMENT_INFO_TYPEHASH() of the escrow is");
  await client().setCode({ address: escrow, bytecode: bytecode ?? "0x" });
  expect(await sent()).toBe(0);
});

test("a collector of another escrow is refused", async () => {
  await client().setCode({ address: collector, bytecode: answering(OTHER) });
  await expect(deploy()).rejects.toThrow(`authCaptureEscrow() of the collector is ${OTHER}`);
  await installCommercePayments(client());
  expect(await sent()).toBe(0);
});

test("it is deployed once, with the roles, and verified with the sources that it was compiled from", async () => {
  const { address, compilerFile } = await deploy();
  expect(await sent()).toBe(1);
  const read = (functionName: "ESCROW" | "COLLECTOR" | "USDC" | "ARBITER" | "FEE_RECIPIENT") =>
    client().readContract({ address, abi: operatorAbi, functionName });
  expect(await Promise.all([read("ESCROW"), read("COLLECTOR"), read("USDC")])).toEqual([
    escrow,
    collector,
    getAddress(settings.facts.usdc.address),
  ]);
  expect(await Promise.all([read("ARBITER"), read("FEE_RECIPIENT")])).toEqual([
    roles.ARBITER_ADDRESS,
    roles.FEE_RECIPIENT_ADDRESS,
  ]);
  const { input } = JSON.parse(readFileSync(compilerFile, "utf8"));
  expect(Object.keys(input.sources)).toContain("project/contracts/ArbiterOperator.sol");
  expect((await deploy()).address).toBe(address);
  expect(await sent()).toBe(1);
});

test("other code at its address is refused", async () => {
  const { address } = await deploy();
  const code = (await client().getCode({ address })) ?? "0x";
  await client().setCode({ address, bytecode: `0x61${code.slice(4)}` });
  await expect(deploy()).rejects.toThrow("is not this project's operator with these roles");
});
