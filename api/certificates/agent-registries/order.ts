import { z } from "zod";
import type { RegistryAddresses } from "../../platform/config/values.ts";
import type { Intake, PaidRoute } from "../../platform/http/route.ts";
import type { Address, Hex } from "../../platform/wallet.ts";
import type { Registries } from "./chain.ts";

/** The publication that a test's buyer orders, as the journal stores it. */
export interface RegistryOrder {
  /** A decimal number below 2^256. */
  readonly agentId: string;
  readonly reputation: Address;
  /** The request that named us as validator, and its registry; null for feedback only. */
  readonly validation: { readonly contract: Address; readonly request: Hex } | null;
}

/** The extras ordered in a test's body; null for most tests. */
export type TestOrder = RegistryOrder | null;

const MOST = 2n ** 256n;

const DECIMAL = 'expected the agent\'s id in the identity registry as a decimal number, like "22"';

const agentId = z
  .union([z.string().regex(/^(0|[1-9]\d{0,77})$/, DECIMAL), z.int(DECIMAL).min(0, DECIMAL)], DECIMAL)
  .transform(String)
  .refine((id) => BigInt(id) < MOST, "an agent's id has at most 256 bits")
  .meta({ description: "The agent's id in ERC-8004's identity registry. Its wallet must be the payer." });

const validationRequest = z
  .string()
  .regex(/^0x[0-9a-fA-F]{64}$/, "expected the hash of a validation request: 0x and 64 hex digits")
  .transform((hash) => hash.toLowerCase() as Hex)
  .exactOptional()
  .meta({
    description: "The hash of a validation request that names us as the validator, which we then answer as well.",
  });

const ERC8004 = z.object({ agentId, validationRequest }).meta({
  description: "Publish the result to the ERC-8004 registries. Optional, at no extra cost.",
});

/** The body of a test, as documented if orders are accepted. */
const ORDER_BODY = z.object({ erc8004: ERC8004.exactOptional() });

const NO_VALIDATION = "This installation does not answer validation requests. Leave out validationRequest.";
/** For installations that publish nothing. */
const NO_ORDER = z.custom<never>(
  () => false,
  "This installation does not publish to ERC-8004 registries. Leave out erc8004.",
);

const membersOf = (body: unknown): object =>
  typeof body === "object" && body !== null && !Array.isArray(body) ? body : {};

/**
 * Parses a test's body. Anything that does not order a publication is ignored and not stored.
 * @param addresses null if nothing is published
 */
const testOrder = (addresses: RegistryAddresses | null): z.ZodType<TestOrder> =>
  z
    .preprocess(membersOf, z.object({ erc8004: (addresses === null ? NO_ORDER : ERC8004).nullish() }))
    .transform(({ erc8004 }, context): TestOrder => {
      if (addresses === null || erc8004 === undefined || erc8004 === null) return null;
      const { agentId, validationRequest: request } = erc8004;
      const { reputation, validation } = addresses;
      if (request === undefined) return { agentId, reputation, validation: null };
      if (validation !== null) return { agentId, reputation, validation: { contract: validation, request } };
      context.addIssue({ code: "custom", message: NO_VALIDATION, path: ["erc8004", "validationRequest"] });
      return z.NEVER;
    });

/** The input that the routes of tests accept. */
export type TestOrdering = Pick<PaidRoute<TestOrder>, "input" | "body" | "intake">;

/** If nothing is published, tests document no body. */
export const testOrdering = (
  addresses: RegistryAddresses | null,
  intake: NonNullable<TestOrdering["intake"]>,
): TestOrdering => ({ input: testOrder(addresses), intake, ...(addresses === null ? {} : { body: ORDER_BODY }) });

const UNREADABLE =
  "The ERC-8004 registries cannot currently be read. Try again later, or leave out erc8004 to buy only the test.";

/**
 * Checks with the chain whether an order can currently be carried out, before anything is charged. The check is
 * repeated when the publication is sent.
 * @param registries null if nothing is published
 */
export const createOrderIntake =
  (registries: Registries | null) =>
  async (order: TestOrder, payer: Address): Promise<Intake<TestOrder>> => {
    if (order === null || registries === null) return { input: order };
    try {
      const problem = await problemOf(registries, order, payer);
      return problem === null ? { input: order } : { refused: [problem] };
    } catch {
      return { unavailable: UNREADABLE };
    }
  };

async function problemOf(registries: Registries, { agentId, reputation, validation }: RegistryOrder, payer: Address) {
  const agent = BigInt(agentId);
  const feedback = await registries.unfit({ agent, contract: reputation, request: null }, payer);
  if (feedback !== null)
    return {
      path: "erc8004.agentId",
      message: `the wallet of agent ${agentId} is not the payer ${payer}, and results are published only about the agent whose wallet was tested`,
    };
  if (validation === null) return null;
  const answer = await registries.unfit({ agent, ...validation }, payer);
  if (answer === null) return null;
  return {
    path: "erc8004.validationRequest",
    message: `no request of agent ${agentId} with this hash names ${registries.publisher} as its validator`,
  };
}
