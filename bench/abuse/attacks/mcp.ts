import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import type { Ground } from "../ground.ts";
import { type Attack, atMost } from "../row.ts";
import { openService } from "../service.ts";

const RESTARTS = 2;

/** A way to the service on which answers to payments can be lost. */
interface Road {
  readonly url: string;
  /** Every payment header that was sent. */
  readonly payments: Set<string>;
  readonly lose: (isLost: boolean) => void;
  readonly lead: (to: string) => void;
  /** Resolves when the next answer was lost. */
  readonly nextLoss: () => Promise<void>;
}

/** The tool server pays, the answer is lost, the tool server dies, and its agent asks the same again. */
export const MCP: Attack = {
  rows: [
    {
      id: "mcp",
      line: 16,
      what: `signatures for one tool call whose answer is lost, ${RESTARTS} restarts`,
      goal: atMost(1),
    },
  ],
  async run(ground) {
    const base = await ground.ownBase();
    const road = await openRoad(ground);
    const env = { BASE_URL: road.url };
    const service = await openService(ground, { base, jobs: true, now: () => new Date(), env });
    ground.untilEnd(service.stop);
    road.lead(service.url);
    const key = generatePrivateKey();
    await base.chain.fund(privateKeyToAddress(key), 10_000_000n);
    const state = mkdtempSync(join(tmpdir(), "bench-abuse-mcp-"));
    ground.untilEnd(() => rmSync(state, { recursive: true, force: true }));
    const start = () =>
      startTools(ground, { BASE_URL: road.url, PAYER_PRIVATE_KEY: key, XDG_STATE_HOME: state, HOME: state });
    road.lose(true);
    for (let restart = 0; restart < RESTARTS; restart++) {
      const tools = await start();
      const lost = road.nextLoss();
      const answer = tools.callTool({ name: "certify", arguments: { test: "basic" } }).then(fail, () => undefined);
      await Promise.race([lost, answer]);
      await tools.close();
    }
    road.lose(false);
    const tools = await start();
    const { isError, content } = await tools.callTool({ name: "certify", arguments: { test: "basic" } });
    await tools.close();
    if (isError) throw new Error(`the tool failed: ${JSON.stringify(content).slice(0, 300)}`);
    return { mcp: road.payments.size };
  },
};

const fail = (answer: unknown): never => {
  throw new Error(`the tool answered without a payment: ${JSON.stringify(answer).slice(0, 300)}`);
};

async function startTools({ subject }: Ground, env: Record<string, string>): Promise<Client> {
  const client = new Client({ name: "bench", version: "1.0.0" });
  const args = [join(subject.folder, "packages/mcp/src/cli.ts")];
  const transport = { command: process.execPath, args, env: { PATH: process.env.PATH ?? "", ...env } };
  await client.connect(new StdioClientTransport(transport));
  return client;
}

async function openRoad(ground: Ground): Promise<Road> {
  let target = "";
  const payments = new Set<string>();
  let isLost = false;
  let noticed = Promise.withResolvers<void>();
  const server = createServer(async (request, response) => {
    const payment = request.headers["payment-signature"];
    if (typeof payment === "string") payments.add(payment);
    const answer = await passOn(request, target).catch(() => null);
    if (answer === null || (typeof payment === "string" && isLost)) {
      response.destroy();
      noticed.resolve();
      return;
    }
    const headers = [...answer.headers].filter(
      ([name]) => !/^(content-encoding|content-length|transfer-encoding)$/.test(name),
    );
    response.writeHead(answer.status, Object.fromEntries(headers)).end(Buffer.from(await answer.arrayBuffer()));
  });
  await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
  ground.untilEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://localhost:${(server.address() as AddressInfo).port}`,
    payments,
    lose: (next) => {
      isLost = next;
    },
    lead: (to) => {
      target = to;
    },
    nextLoss: () => {
      noticed = Promise.withResolvers<void>();
      return noticed.promise;
    },
  };
}

async function passOn(request: IncomingMessage, target: string): Promise<Response> {
  const body = await buffer(request);
  const headers = Object.entries(request.headers).flatMap(([name, value]) =>
    typeof value === "string" && !/^(host|connection|content-length|accept-encoding)$/.test(name)
      ? [[name, value] as const]
      : [],
  );
  return fetch(`${target}${request.url}`, {
    method: request.method ?? "GET",
    headers: Object.fromEntries(headers),
    ...(body.length === 0 ? {} : { body }),
  });
}
