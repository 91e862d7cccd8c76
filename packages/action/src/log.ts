import { readFile, rename, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Expectation, KeptLogs, LeftOutReport, Policy } from "../../verifier/src/index.ts";
import { Failure } from "./fields.ts";
import type { LogInputs } from "./inputs.ts";
import { recordOf, recordUrl, type WalletRecord } from "./record.ts";

type Verifier = typeof import("../../verifier/src/index.ts");
type Listed = Awaited<ReturnType<Verifier["checkListed"]>>;
export type LeftOut = Omit<LeftOutReport, "state"> & { readonly state: LeftOutReport["state"] | "not_checked" };

export interface LogReport {
  /** The record that was compared; a different response of the service is not covered. */
  readonly record: WalletRecord;
  /** Whether each certificate that counts is in the log. */
  readonly listed: Listed;
  /** Whether the record omits anything in the log. */
  readonly leftOut: LeftOut;
}

export const NOT_COMPARED: LeftOut = {
  state: "not_checked",
  reason: "The log was not read.",
  hidden: [],
  entries: 0,
};

const READING_MS = 120_000;
export interface LogQuestion {
  readonly baseUrl: string;
  readonly inputs: LogInputs;
  /** The wait before an apparent omission is checked again: longer than a reversal usually takes to reach the log. */
  readonly pauseMs: number;
}

/** Compares a record with the service's public log, both ways. Throws a Failure for an invalid input. */
export async function checkLog(first: WalletRecord, { baseUrl, inputs, pauseMs }: LogQuestion): Promise<LogReport> {
  const verifier = await import("../../verifier/src/index.ts").catch((error: Error) => {
    throw new Failure(`log-policy needs the folder packages/verifier next to the action's: ${error.message}`);
  });
  const policy = given("log-policy", () => verifier.parsePolicy(inputs.policy));
  const expected = { keys: await readKeys(verifier, baseUrl), issuer: baseUrl };
  const checking = { verifier, baseUrl, policy, expected, pauseMs };
  const compared = inputs.mostEntries === 0 ? null : await compare(first.wallet, inputs, checking);
  const record = compared?.record ?? first;
  const listed = await checkCertificates(record, inputs.proofs, checking);
  return { record, listed, leftOut: compared?.leftOut ?? NOT_COMPARED };
}

interface Checking {
  readonly verifier: Verifier;
  readonly baseUrl: string;
  readonly policy: Policy;
  readonly expected: Expectation;
  readonly pauseMs: number;
}

async function checkCertificates(
  { wallet, certs }: WalletRecord,
  files: readonly string[],
  { verifier, baseUrl, policy, expected }: Checking,
): Promise<Listed> {
  const proofs = await Promise.all(
    files.map((file) =>
      readFile(file).catch((error: NodeJS.ErrnoException) => {
        throw new Failure(`log-proofs names "${file}", which cannot be read: ${error.code}`);
      }),
    ),
  );
  const fetchProof = (id: string) => proofOf(verifier, baseUrl, id);
  // From JSON, so the values have these types.
  const certificates = certs as unknown as Parameters<Verifier["checkListed"]>[0]["certificates"];
  return verifier.checkListed({ wallet, certificates, policy, expected, proofs, fetchProof });
}

async function compare(
  wallet: string,
  { state, mostEntries }: LogInputs,
  { verifier, pauseMs, ...trusted }: Checking,
): Promise<{ readonly leftOut: LeftOut; readonly record: WalletRecord | null }> {
  const url = recordUrl(trusted.baseUrl, wallet);
  const { report, kept, record } = await verifier.checkLeftOut({
    ...{ wallet, ...trusted, mostEntries, timeoutMs: READING_MS },
    kept: state === null ? new Map() : await readKept(verifier, state),
    fetchRecord: () => verifier.fetchText(url),
    pause: () => sleep(pauseMs),
  });
  if (state !== null) await keep(state, verifier.formatKept(kept));
  const text = record === null || typeof record === "string" ? record : new TextDecoder().decode(record);
  return { leftOut: report, record: text === null ? null : recordOf(JSON.parse(text), { url, wallet }) };
}

/**
 * Replaces the file atomically: if a canceled job left a part of it, every later run that finds it in a cache would
 * fail.
 */
async function keep(file: string, text: string): Promise<void> {
  const temporary = `${file}.new`;
  try {
    await writeFile(temporary, text);
    await rename(temporary, file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Failure(`log-state names "${file}", which cannot be written: ${code}`);
  }
}

async function readKept({ parseKept }: Verifier, file: string): Promise<KeptLogs> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw new Failure(`log-state names "${file}", which cannot be read: ${error.code}`);
  });
  return text === null ? new Map() : given("log-state", () => parseKept(text));
}

async function readKeys({ fetchText, parseKeySet }: Verifier, baseUrl: string) {
  try {
    return await parseKeySet(new TextDecoder().decode(await fetchText(`${baseUrl}/.well-known/jwks.json`)));
  } catch (error) {
    throw new Failure(`The service's keys cannot be read: ${(error as Error).message}`);
  }
}

async function proofOf({ fetchText, InputError }: Verifier, baseUrl: string, id: string) {
  if (!/^[0-9a-f]{16}$/.test(id)) return { absent: "this is not a certificate's id" };
  try {
    return { proof: await fetchText(`${baseUrl}/cert/${id}.tlog-proof`, { accept: "text/plain" }) };
  } catch (error) {
    if (error instanceof InputError) return { absent: error.message };
    throw error;
  }
}

function given<T>(name: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new Failure(`${name} cannot be used: ${(error as Error).message}`);
  }
}
