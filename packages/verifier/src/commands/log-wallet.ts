import { isTime } from "../freshness.ts";
import { InputError, parseInput, quote } from "../refusal.ts";
import { parseUnsignedJson } from "../strict-json.ts";
import { entriesOf, hiddenBy, listIn, type WalletEntries } from "../tlog/wallet-log.ts";
import { counted, FLAG, readArguments, readSource, TEXT } from "./arguments.ts";
import { readNotes, readState } from "./monitor-state.ts";

const USAGE = `Shows a wallet's entries in the log, from the files that a monitor wrote. Nothing is fetched from the service.

  agent-payment-trust-verifier log wallet <0x…> --state <file> --wallets <file> [--record <file | URL>] [--at <time>] [--json]

--state and --wallets are the files of "log monitor". --record is the service's statement about the wallet: its verification
record or its credential.

Entries of types that the monitor did not know are listed, because they may be about any wallet.

Exit codes: 0 answered; 1 the record omits a FAIL that counts, calls the wallet verified in spite of it, or shows a certificate
differently from the log; 2 usage error or unreadable input.`;

/** The subcommand `log wallet`. @throws InputError for wrong usage, or for a file that cannot be read */
export async function checkWallet(args: readonly string[]): Promise<0 | 1> {
  const given = readArguments(args, USAGE, { state: TEXT, wallets: TEXT, record: TEXT, at: TEXT, json: FLAG });
  const { source, state, wallets, record, at: time } = given;
  const wallet = source.toLowerCase();
  if (!/^0x[0-9a-f]{40}$/.test(wallet)) throw new InputError(`${quote(source)} is not an address.\n\n${USAGE}`);
  if (state === undefined || wallets === undefined) throw new InputError(`Expected --state and --wallets.\n\n${USAGE}`);
  if (time !== undefined && !isTime(time)) throw new InputError(`--at ${quote(time)} is not a UTC time`);
  const kept = await readState(state);
  if (kept === null) throw new InputError(`${quote(state)} does not exist: run log monitor first`);
  const { place, notes } = kept;
  if (notes === null)
    throw new InputError(`${quote(state)} was written without --wallets: remove it, and monitor the log again`);
  const { certificates, unknown } = await entriesOf(wallet, readNotes(wallets, notes));
  const at = time === undefined ? new Date() : new Date(time);
  const hidden = record === undefined ? [] : hiddenBy(await listedIn(record, wallet), certificates, at);
  const report = { wallet, log: place.origin, size: place.size, certificates, unknown, hidden };
  console.log(given.json ? JSON.stringify(report, null, 2) : render(report));
  return hidden.length === 0 ? 0 : 1;
}

async function listedIn(source: string, wallet: string) {
  const text = await readSource(source);
  const isNone = `${quote(source)} is not a verification record or a credential`;
  const found = listIn(
    parseInput(
      () => parseUnsignedJson(text),
      (reason) => `${isNone}: ${reason}`,
    ),
  );
  if (found === null) throw new InputError(isNone);
  if (found.wallet.toLowerCase() !== wallet) throw new InputError(`${quote(source)} is about ${quote(found.wallet)}`);
  return found;
}

interface WalletReport extends WalletEntries {
  readonly wallet: string;
  readonly log: string;
  readonly size: number;
  readonly hidden: readonly string[];
}

function render({ wallet, log, size, certificates, unknown, hidden }: WalletReport): string {
  const lines = certificates.map(({ index, id, product, verdict, issued_at, valid_until, reversed }) => {
    const end = reversed === null ? `valid until ${quote(valid_until)}` : `reversed by entry ${reversed}`;
    return `  entry ${index}: ${quote(product)} ${quote(verdict)}, ${quote(id)}, issued ${quote(issued_at)}, ${end}`;
  });
  return [
    `${wallet} has ${counted(certificates.length, "certificate")} in the first ${counted(size, "entry", "entries")} of ${log}`,
    ...lines,
    ...unknown.map((one) => `UNKNOWN: entry ${one.index} is of the type ${quote(one.entry_type)}; ${REREAD}`),
    ...hidden.map((what) => `HIDDEN: ${what}`),
  ].join("\n");
}

const REREAD = "update the package, remove --state and --wallets, and monitor the log again";
