import { templatePath } from "../../../api/discovery/openapi.ts";
import { startTestChain, type TestChain } from "../../support/chain/chain.ts";
import { openOperator } from "../../support/escrow/auth-capture.ts";
import { deployEscrow } from "../../support/escrow/contract.ts";
import { startService, type TestService } from "../../support/service/service.ts";

export interface Scene {
  readonly chain: TestChain;
  readonly service: TestService;
  readonly stop: () => Promise<void>;
}

/** Starts the service with everything for sale, including the escrow demo. */
export async function startScene(): Promise<Scene> {
  const chain = await startTestChain();
  const addresses = [(await deployEscrow(chain)).address, (await openOperator(chain)).address];
  const service = await startService({
    chain,
    config: { escrowAddresses: addresses, securityContact: "mailto:security@trust.example" },
  });
  return {
    chain,
    service,
    async stop() {
      await service.stop();
      await chain.stop();
    },
  };
}

/** The public routes of the specification, without its two guides for people. */
export const SPECIFIED = [
  "POST /test/basic",
  "POST /test/suite",
  "POST /test/scam/start",
  "POST /test/recipient/start",
  "POST /score",
  "POST /score/batch",
  "POST /arbiter/verify",
  "POST /arbiter/verify/scored",
  "POST /escrow/demo",
  "POST /order/espresso",
  "POST /order/flat-white",
  "POST /order/the-good-stuff",
  "POST /order/buy-a-round",
  "POST /test/scam/attempt",
  "POST /test/recipient/attempt",
  "POST /test/scam/result",
  "POST /test/recipient/result",
  "GET /inspect",
  "GET /verify",
  "GET /credential/{wallet}",
  "GET /cert/{id}",
  "GET /badge/{file}",
  "GET /board",
  "GET /stats",
  "GET /escrow",
  "GET /escrow/demo",
  "POST /escrow/verify",
  "GET /arbiter",
  "GET /arbiter/policy",
  "GET /arbiter/verdict/{id}",
  "GET /.well-known/jwks.json",
  "GET /.well-known/x402",
  "GET /openapi.json",
  "GET /.well-known/agent.json",
  "GET /agent-card",
  "GET /.well-known/security.txt",
  "GET /llms.txt",
  "GET /llms-full.txt",
  "GET /terms",
  "GET /privacy",
  "GET /agent-registration",
  "GET /health",
  "GET /status",
] as const;

/** Every mounted route, in the notation of the published documents. */
export const mountedRoutes = ({ mounted }: TestService): readonly string[] =>
  mounted.map(({ method, path }) => `${method} ${templatePath(path)}`);
