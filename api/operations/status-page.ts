import { formatEther } from "viem";
import { NETWORKS } from "../platform/networks.ts";
import { counted, html, instant, type Markup } from "../platform/page/html.ts";
import { facts, mark, renderPage } from "../platform/page/page.ts";
import type { ChainStatus, SenderStatus, Status } from "./schemas.ts";

/** Renders the status as a page. */
export const renderStatus = (status: Status): string =>
  renderPage({
    title: status.ok ? "All systems operational" : "Some systems need attention",
    description: "Live status of the database, the chains, the indexer and settlement.",
    current: "/status",
    main: html`<div class="hero"><p class="eyebrow">Status</p>
<h1>${status.ok ? "All systems operational" : "Some systems need attention"}</h1>
<p class="lead">Checked ${at(status.checked_at)}. Version <code>${status.version}</code>. Also available <a href="/status?format=json">as JSON</a>.</p></div>
${part("Database", answers(status.database.ok), html`<p class="soft">Certificates, verdicts and the payment journal.</p>`)}
${status.chains.map((chain) => part(NETWORKS[chain.network].name, answers(chain.ok), chainFacts(chain)))}
${status.usdc.map((usdc) => part(`USDC on ${NETWORKS[usdc.network].name}`, usdc.ok ? mark("pass", "Accepted") : mark("fail", "Payments paused"), usdcFacts(usdc)))}
${part("Indexer", indexerMark(status), indexerFacts(status))}
${part("Settlement", answers(status.settlement.ok), settlementFacts(status))}
${status.senders.map((sender) => part(senderName(sender), sender.ok ? mark("pass", "Sending") : mark("fail", "Needs attention"), senderFacts(sender)))}
${status.jobs.length > 0 && part("Jobs", jobsMark(status.jobs), jobFacts(status.jobs))}
${status.log !== null && part("Log", status.log.ok ? mark("pass", "Signing") : mark("fail", "Needs attention"), logFacts(status.log))}
${part("Payments", status.payments.unresolved === 0 ? mark("pass", "All resolved") : mark("gray", "Some pending"), paymentFacts(status))}`,
  });

const part = (name: string, sign: Markup, detail: Markup): Markup =>
  html`<section class="part"><h2><span>${name}</span> ${sign}</h2>${detail}</section>`;

const answers = (ok: boolean): Markup => (ok ? mark("pass", "Responding") : mark("fail", "Not responding"));

const indexerMark = ({ indexer }: Status): Markup =>
  indexer.ready ? (indexer.ok ? mark("pass", "Ready") : mark("fail", "Behind")) : mark("gray", "Catching up");

const at = (time: string): Markup => instant(new Date(time));
const whole = (value: number | null): string => value?.toLocaleString("en-US") ?? "unknown";
const seconds = (value: number | null): string => (value === null ? "unknown" : `${value.toLocaleString("en-US")} s`);

const chainFacts = (chain: ChainStatus): Markup =>
  facts(
    [
      ["Network", html`<code>${chain.network}</code>`],
      ["Newest block", whole(chain.block)],
      ["Finalized block", whole(chain.finalized_block)],
      ["Lag", seconds(chain.lag_seconds)],
      ...(chain.nodes.length === 1 ? [] : chain.nodes.map(nodeFact)),
    ],
    "short",
  );

const nodeFact = ({ rank, ok, block, lag_seconds }: ChainStatus["nodes"][number]): readonly [string, string] => [
  `Node ${rank}`,
  block === null
    ? "Not responding"
    : `${ok ? "Responding" : "Behind"}, block ${whole(block)}, lag ${seconds(lag_seconds)}`,
];

const usdcFacts = ({ paused, receiver_blacklisted }: Status["usdc"][number]): Markup =>
  facts(
    [
      ["Paused by its issuer", yesNo(paused)],
      ["Receiving address on its blacklist", yesNo(receiver_blacklisted)],
    ],
    "short",
  );

const yesNo = (value: boolean | null): string => (value === null ? "unknown" : value ? "Yes" : "No");

const indexerFacts = ({ indexer }: Status): Markup =>
  facts(
    [
      ["Ready", indexer.ready ? "Yes" : "No, catching up"],
      ["Block", whole(indexer.block)],
      ["Lag", seconds(indexer.lag_seconds)],
      ...(indexer.reason === null ? [] : [["Unavailable", indexer.reason] as const]),
    ],
    "short",
  );

const settlementFacts = ({ settlement }: Status): Markup =>
  facts([["Facilitator", settlement.mode === "in-process" ? "In process" : "Remote"]], "short");

const senderName = ({ role, network }: SenderStatus): string =>
  `${role === "facilitator" ? "Facilitator" : "Arbiter"} on ${NETWORKS[network].name}`;

const senderFacts = ({ address, balance_wei, unmined, oldest_unmined_seconds: oldest }: SenderStatus): Markup =>
  facts(
    [
      ["Address", html`<code>${address}</code>`],
      ["Gas balance", balance_wei === null ? "unknown" : `${formatEther(BigInt(balance_wei))} ETH`],
      ["Unmined transactions", whole(unmined)],
      ...(oldest === null ? [] : [["Oldest unmined", seconds(oldest)] as const]),
    ],
    "short",
  );

const jobsMark = (jobs: Status["jobs"]): Markup =>
  jobs.every(({ ok }) => ok) ? mark("pass", "Running") : mark("fail", "Some failing");

const jobFacts = (jobs: Status["jobs"]): Markup =>
  facts(
    jobs.map(({ name, ok, last_success_at }) => [
      name,
      html`${ok ? "" : "Failing. "}${last_success_at === null ? "No success yet" : html`Last succeeded ${at(last_success_at)}`}`,
    ]),
    "short",
  );

const logFacts = (log: NonNullable<Status["log"]>): Markup =>
  facts(
    [
      ["Entries", whole(log.size)],
      ...(log.problem === null ? [] : [["Problem", log.problem] as const]),
      ...(log.quorum === 0
        ? [["Witnesses", "none configured"] as const]
        : [
            [
              "Witnessed",
              log.witnessed_at === null ? "not yet" : html`Entry ${log.witnessed_size}, ${at(log.witnessed_at)}`,
            ] as const,
          ]),
      ...log.witnesses.map(
        ({ name, cosigned_at, error, danger }) =>
          [
            name,
            html`${cosigned_at === null ? "No cosignature yet" : html`Cosigned ${at(cosigned_at)}`}${error !== null && html`. Error: ${danger ?? error}`}`,
          ] as const,
      ),
      ...(log.anchor === null
        ? []
        : [
            [
              "Anchor on Base",
              html`${counted(log.anchor.size, "entry", "entries")}, ${log.anchor.state}, ${at(log.anchor.at)}`,
            ] as const,
          ]),
    ],
    "short",
  );

const paymentFacts = ({ payments }: Status): Markup =>
  facts(
    [
      ["Outcome still unknown", whole(payments.unresolved)],
      [
        "Oldest such payment",
        payments.oldest_unresolved_seconds === null ? "none" : seconds(payments.oldest_unresolved_seconds),
      ],
    ],
    "short",
  );
