import { parseArgs } from "node:util";
import { createClient, type Hex, http, isAddress, isHex } from "viem";
import { type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { getTransactionReceipt } from "viem/actions";
import { formatUsd } from "./money.ts";
import { RefundRefused, type RefundTarget, selfRefund } from "./self-refund.ts";
import { REFUNDABLE_AFTER_TEXT } from "./terms.ts";

export const USAGE = `Refunds an escrowed payment to its payer, starting ${REFUNDABLE_AFTER_TEXT} after the hold.

  agent-payment-trust-escrow refund <payment id | transaction of the hold> --rpc <URL> [options]

  --rpc <URL>        JSON-RPC of the chain
  --key-env <NAME>   environment variable holding the private key that sends the refund and pays the gas
                     (default PRIVATE_KEY); any account will do, since the money goes to the payer
  --escrow <0x…>     the escrow contract; makes it easier to find a payment by its id

Exit codes: 0 refunded; 1 not refundable (too early, already settled, or no such payment); 2 usage error, or the chain cannot be
read.`;

/** Thrown for incorrect use of the command line. */
export class UsageError extends Error {}

interface Options {
  readonly key: Hex;
  readonly rpcUrl: string;
  readonly account: PrivateKeyAccount;
  readonly escrow: Hex | undefined;
}

/** The subcommand `refund`: prints the result. @throws UsageError, or the chain node's own error */
export async function refundCommand(args: readonly string[]): Promise<0 | 1> {
  const options = parse(args);
  try {
    const { account, rpcUrl } = options;
    const { id, payer, amount, transaction, isPaid } = await selfRefund({
      account,
      rpcUrl,
      ...(await target(options)),
    });
    console.log(`Payment ${id}: ${formatUsd(amount)} USDC was refunded to ${payer} in transaction ${transaction}.`);
    if (!isPaid)
      console.log(
        "USDC refused the transfer, so the escrow owes the payer this amount; withdraw(payer) pays it out later.",
      );
    return 0;
  } catch (error) {
    if (!(error instanceof RefundRefused)) throw error;
    console.error(error.message);
    return 1;
  }
}

/** Both are 32 bytes; the key is a transaction if the chain knows one. */
async function target({ key, rpcUrl, escrow }: Options): Promise<RefundTarget> {
  const client = createClient({ transport: http(rpcUrl) });
  const isTransaction = await getTransactionReceipt(client, { hash: key }).then(
    () => true,
    (error: unknown) => {
      if (error instanceof Error && error.name === "TransactionReceiptNotFoundError") return false;
      throw error;
    },
  );
  if (isTransaction) return { transaction: key };
  return escrow === undefined ? { paymentId: key } : { paymentId: key, escrow };
}

function parse(args: readonly string[]): Options {
  const { values, positionals } = parsed(args);
  const [key] = positionals;
  const { rpc, "key-env": keyEnv = "PRIVATE_KEY", escrow } = values;
  if (positionals.length !== 1 || !isHash(key))
    throw new UsageError("Name one payment id or transaction hash: 0x and 64 hex digits.");
  if (rpc === undefined || !URL.canParse(rpc))
    throw new UsageError("--rpc <URL> is missing: the chain's JSON-RPC URL.");
  if (escrow !== undefined && !isAddress(escrow, { strict: false }))
    throw new UsageError("--escrow is not an address.");
  const secret = process.env[keyEnv];
  if (!isHash(secret)) {
    throw new UsageError(
      `${keyEnv} is not set to a private key (0x and 64 hex digits); use --key-env to name a different variable.`,
    );
  }
  return { key, rpcUrl: rpc, account: privateKeyToAccount(secret), escrow };
}

function parsed(args: readonly string[]) {
  const options = { rpc: { type: "string" }, "key-env": { type: "string" }, escrow: { type: "string" } } as const;
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

const isHash = (text: string | undefined): text is Hex => isHex(text) && text.length === 66;
