import { type Address, getAddress, isAddress } from "viem";
import { z } from "zod";
import { read, type Service, ServiceError } from "./service.ts";

/** The published facts about a paid path: the price in atomic units, and the payee. */
export interface Published {
  readonly amount: bigint;
  readonly payTo: Address;
}

const address = z.string().refine((text) => isAddress(text, { strict: false }), "expected an address");

const MANIFEST = z.object({
  resources: z.array(z.object({ resource: z.string(), amount: z.string().regex(/^\d{1,19}$/), payTo: address })),
});

/** Reads `/.well-known/x402` on first use and caches it for the whole session; later changes are ignored. */
export function publishedBy(service: Service): (path: string) => Promise<Published> {
  let manifest: Promise<z.infer<typeof MANIFEST>> | null = null;
  return async (path) => {
    manifest ??= readManifest(service);
    // A failed read is retried next time.
    manifest.catch(() => (manifest = null));
    const found = (await manifest).resources.find(({ resource }) => resource === `${service.baseUrl}${path}`);
    if (found === undefined) throw new ServiceError(`The service publishes no price for ${path}. Nothing was signed.`);
    return { amount: BigInt(found.amount), payTo: getAddress(found.payTo) };
  };
}

async function readManifest(service: Service): Promise<z.infer<typeof MANIFEST>> {
  const manifest = MANIFEST.safeParse((await read(service, "/.well-known/x402")).document);
  if (!manifest.success) throw new ServiceError("/.well-known/x402 is not an x402 manifest. Nothing was signed.");
  return manifest.data;
}
