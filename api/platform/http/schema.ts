import { z } from "zod";
import { MAIN_NETWORK, NETWORKS } from "../networks.ts";
import { type Address, type Hex, readWallet } from "../wallet.ts";

/** Returns a schema for a pattern whose matches have the type of `0x`-prefixed hex. */
const hex = (pattern: RegExp, description: string): z.ZodType<Hex> =>
  z.string().regex(pattern).meta({ description }) as unknown as z.ZodType<Hex>;

// The building blocks of published documents. They describe the service's output; most input is parsed elsewhere.

export const address: z.ZodType<Address> = hex(/^0x[0-9a-f]{40}$/, "An address: 20 bytes as lowercase hex.");
export const mixedCaseAddress = hex(/^0x[0-9a-fA-F]{40}$/, "An address: 20 bytes as hex.");

/** A wallet in a path or a query. */
export const walletText = z
  .string()
  .regex(new RegExp(`^((did:pkh:)?${MAIN_NETWORK}:)?0x[0-9a-fA-F]{40}$`))
  .meta({
    description: `A wallet: its address in lower case or with its EIP-55 checksum, alone or as CAIP-10 or did:pkh on ${MAIN_NETWORK}.`,
  });

/** The same in a body. */
export const wallet = z.string().transform((text, issues): Address => {
  const read = readWallet(text);
  if ("wallet" in read) return read.wallet;
  issues.addIssue({ code: "invalid_format", format: "wallet", message: read.malformed });
  return z.NEVER;
});

export const bytes32 = hex(/^0x[0-9a-f]{64}$/, "32 bytes as lowercase hex.");
export const mixedCaseBytes32 = hex(/^0x[0-9a-fA-F]{64}$/, "32 bytes as hex.");
export const signature65 = hex(/^0x[0-9a-fA-F]{130}$/, "A signature: 65 bytes (r, s, v) as hex.");
export const transactionHash = hex(/^0x[0-9a-f]{64}$/, "A transaction hash.");

export const sha256Hex = z
  .string()
  .regex(/^[0-9a-f]{64}$/)
  .meta({ description: "SHA-256 as 64 lowercase hex digits." });

/** As `Date.prototype.toISOString` writes it. */
export const time = z
  .string()
  .regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  .meta({ format: "date-time", description: "UTC, ISO 8601." });

export const day = z
  .string()
  .regex(/^\d{4}-\d\d-\d\d$/)
  .meta({ format: "date", description: "A UTC calendar day." });

export const url = z
  .string()
  .regex(/^https?:\/\//)
  .meta({ format: "uri" });

export const atomic = z
  .string()
  .regex(/^\d+$/)
  .meta({ description: "An amount in atomic units: 1,000,000 is one USDC." });

export const usd = z
  .string()
  .regex(/^\d+\.\d{2,6}$/)
  .meta({ description: "An amount in USDC, such as 0.25." });

export const unixSeconds = z.string().regex(/^\d+$/).meta({ description: "Unix seconds as a decimal string." });

export const count = z.int().min(0);
export const network = z
  .enum(Object.values(NETWORKS).map(({ id }) => id))
  .meta({ description: "The chain's CAIP-2 identifier." });
export const networkKey = z.enum(Object.values(NETWORKS).map(({ key }) => key));

export const SERVICE = z.literal("Agent Payment Trust Service");

const typedMember = z.object({ name: z.string(), type: z.string() });

/** The members of any EIP-712 type. */
export const typedMembers = z.array(typedMember);

/** The members of one EIP-712 type. Their exact type is known to the compiler only; the schema accepts any members. */
export const membersOf = <Members extends readonly object[]>(_: Members): z.ZodType<Members> =>
  typedMembers as unknown as z.ZodType<Members>;

/** One wrong field of a request body: its dotted path and what is expected. */
export interface FieldError {
  readonly path: string;
  readonly message: string;
  /** The number of the arbiter policy rule that rejects it. */
  readonly rule?: number;
}
