import { readFile } from "node:fs/promises";
import { Failure } from "./fields.ts";
import type { LogInputs } from "./inputs.ts";
import type { WalletRecord } from "./record.ts";

type Verifier = typeof import("../../verifier/src/index.ts");
export type LogReport = Awaited<ReturnType<Verifier["checkListed"]>>;

/** Each certificate of a record that counts, looked up in the service's public log. Throws a Failure for a wrong input. */
export async function checkLog(
  { wallet, certs }: WalletRecord,
  baseUrl: string,
  { policy: text, proofs: files }: LogInputs,
): Promise<LogReport> {
  const verifier = await import("../../verifier/src/index.ts").catch((error: Error) => {
    throw new Failure(`log-policy needs the folder packages/verifier next to the action's: ${error.message}`);
  });
  const policy = given("log-policy", () => verifier.parsePolicy(text));
  const proofs = await Promise.all(
    files.map((file) =>
      readFile(file).catch((error: NodeJS.ErrnoException) => {
        throw new Failure(`log-proofs names "${file}", which cannot be read: ${error.code}`);
      }),
    ),
  );
  const expected = { keys: await readKeys(verifier, baseUrl), issuer: baseUrl };
  const fetchProof = (id: string) => proofOf(verifier, baseUrl, id);
  // From JSON, whose values are these.
  const certificates = certs as unknown as Parameters<Verifier["checkListed"]>[0]["certificates"];
  return verifier.checkListed({ wallet, certificates, policy, expected, proofs, fetchProof });
}

async function readKeys({ fetchText, parseKeySet }: Verifier, baseUrl: string) {
  try {
    return await parseKeySet(new TextDecoder().decode(await fetchText(`${baseUrl}/.well-known/jwks.json`)));
  } catch (error) {
    throw new Failure(`The service's keys cannot be read: ${(error as Error).message}`);
  }
}

async function proofOf({ fetchText, InputError }: Verifier, baseUrl: string, id: string) {
  if (!/^[0-9a-f]{16}$/.test(id)) return { absent: "this is no certificate's id" };
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
