import { getAddress, type LocalAccount } from "viem";
import { createSiweMessage } from "viem/siwe";
import { z } from "zod";
import { problemOf, type Service, type ServiceAnswer, ServiceError } from "./service.ts";
import { termsOf } from "./stock-client.ts";

const EXTENSION = "sign-in-with-x";
const HEADER = "SIGN-IN-WITH-X";

/** Base, where the wallet pays. */
const CHAIN = { id: 8453, network: "eip155:8453" } as const;

/** The longest validity of a signed sign-in. */
const MOST_MINUTES = 10;

const CHALLENGE = z.object({
  info: z.object({
    domain: z.string(),
    uri: z.string(),
    version: z.literal("1"),
    nonce: z.string().regex(/^[A-Za-z0-9]{8,128}$/),
    issuedAt: z.iso.datetime(),
    expirationTime: z.iso.datetime(),
    statement: z
      .string()
      .max(300)
      .regex(/^[^\n\r]*$/)
      .exactOptional(),
    resources: z.array(z.string().max(300)).max(5).exactOptional(),
  }),
  supportedChains: z.array(z.object({ chainId: z.string(), type: z.string() })),
});
type Challenge = z.infer<typeof CHALLENGE>["info"];

/**
 * Returns the response of a path to the wallet, by x402's extension `sign-in-with-x`: the challenge of its 402, signed.
 * Only a challenge for the service itself is signed, so its signature is useless elsewhere.
 * @throws ServiceError if the challenge has another form, or the service does not accept the sign-in
 */
export async function sendSignedIn(service: Service, account: LocalAccount, path: string): Promise<ServiceAnswer> {
  const asked = await service.send({ path });
  if (asked.status !== 402) throw new ServiceError(`${path}: expected a challenge (402); ${problemOf(asked)}`);
  const challenge = challengeIn(asked, service.baseUrl);
  const answer = await service.send({ path, headers: { [HEADER]: await signed(challenge, account) } });
  if (answer.status === 200) return answer;
  throw new ServiceError(`${path}: ${answer.status === 402 ? refusalIn(answer) : problemOf(answer)}`);
}

function challengeIn({ headers }: ServiceAnswer, baseUrl: string): Challenge {
  const { success, data } = CHALLENGE.safeParse(termsOf(headers).extensions?.[EXTENSION]);
  if (!success) throw refused("it is not one of x402's sign-in-with-x");
  const { info, supportedChains } = data;
  const { host, origin } = new URL(baseUrl);
  if (info.domain !== host) throw refused(`its domain is ${info.domain.slice(0, 100)}, expected ${host}`);
  if (!URL.canParse(info.uri) || new URL(info.uri).origin !== origin)
    throw refused(`its uri is ${info.uri.slice(0, 100)}, expected one of ${origin}`);
  if (!supportedChains.some(({ chainId, type }) => chainId === CHAIN.network && type === "eip191"))
    throw refused(`it is not for ${CHAIN.network}`);
  const minutes = (Date.parse(info.expirationTime) - Date.parse(info.issuedAt)) / 60_000;
  if (!(minutes <= MOST_MINUTES)) throw refused(`it is valid for more than ${MOST_MINUTES} minutes`);
  return info;
}

const refused = (why: string) =>
  new ServiceError(`The service's challenge is not signed: ${why}. Nothing was signed or sent.`);

async function signed({ issuedAt, expirationTime, ...info }: Challenge, account: LocalAccount): Promise<string> {
  const address = getAddress(account.address);
  const message = createSiweMessage({
    ...info,
    address,
    chainId: CHAIN.id,
    issuedAt: new Date(issuedAt),
    expirationTime: new Date(expirationTime),
  });
  const signature = await account.signMessage({ message });
  const payload = { ...info, issuedAt, expirationTime, address, chainId: CHAIN.network, type: "eip191", signature };
  return btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(payload))));
}

function refusalIn({ headers }: ServiceAnswer): string {
  const { error = "no reason" } = termsOf(headers);
  return `the service did not accept the sign-in: ${error.slice(0, 500)}`;
}
