import { formatEther } from "viem";
import { NETWORKS } from "../kernel/networks.ts";
import { html, instant, type Markup } from "../layout/html.ts";
import { facts, mark, renderPage } from "../layout/page.ts";
import type { JobHealth } from "./job-watch.ts";
import type { ChainStatus, SenderStatus, ServiceStatus } from "./status.ts";

/** The status page; `statusDocument` gives the same as JSON. */
export const renderStatus = (status: ServiceStatus): string =>
  renderPage({
    title: status.ok ? "All parts answer" : "Some parts do not answer",
    description: "Whether the database, the chains, the indexer and settlement answer now.",
    current: "/status",
    main: html`<div class="hero"><p class="eyebrow">Status</p>
<h1>${status.ok ? "All parts answer" : "Some parts do not answer"}</h1>
<p class="lead">Checked ${instant(status.checkedAt)}. Version <code>${status.version}</code>. Programs read <a href="/status?format=json">the same as JSON</a>.</p></div>
${part("Database", answers(status.database.ok), html`<p class="soft">Certificates, verdicts and the payment journal.</p>`)}
${status.chains.map((chain) => part(NETWORKS[chain.network].name, answers(chain.ok), chainFacts(chain)))}
${part("Indexer", indexerMark(status), indexerFacts(status))}
${part("Settlement", answers(status.settlement.ok), settlementFacts(status))}
${status.senders.map((sender) => part(senderName(sender), sender.ok ? mark("pass", "Sends") : mark("fail", "Needs attention"), senderFacts(sender)))}
${status.jobs.length > 0 && part("Jobs", jobsMark(status.jobs), jobFacts(status.jobs))}
${part("Payments", status.payments.unresolved === 0 ? mark("pass", "All resolved") : mark("grey", "Some open"), paymentFacts(status))}`,
  });

const part = (name: string, sign: Markup, detail: Markup): Markup =>
  html`<section class="part"><h2><span>${name}</span> ${sign}</h2>${detail}</section>`;

const answers = (ok: boolean): Markup => (ok ? mark("pass", "Answers") : mark("fail", "Does not answer"));

const indexerMark = ({ indexer }: ServiceStatus): Markup =>
  indexer.ready ? (indexer.ok ? mark("pass", "Ready") : mark("fail", "Behind")) : mark("grey", "Catching up");

const whole = (value: number | null): string => value?.toLocaleString("en-US") ?? "unknown";
const seconds = (value: number | null): string => (value === null ? "unknown" : `${value.toLocaleString("en-US")} s`);

const chainFacts = (chain: ChainStatus): Markup =>
  facts(
    [
      ["Network", html`<code>${chain.network}</code>`],
      ["Newest block", whole(chain.block)],
      ["Finalized block", whole(chain.finalizedBlock)],
      ["Behind now", seconds(chain.lagSeconds)],
    ],
    "short",
  );

const indexerFacts = ({ indexer }: ServiceStatus): Markup =>
  facts(
    [
      ["Ready", indexer.ready ? "Yes" : "No, catching up"],
      ["Block", whole(indexer.block)],
      ["Behind now", seconds(indexer.lagSeconds)],
    ],
    "short",
  );

const settlementFacts = ({ settlement }: ServiceStatus): Markup =>
  facts([["Facilitator", settlement.mode === "in-process" ? "In process" : "Remote"]], "short");

const senderName = ({ role, network }: SenderStatus): string =>
  `${role === "facilitator" ? "Facilitator" : "Arbiter"} on ${NETWORKS[network].name}`;

const senderFacts = ({ address, balanceWei, unmined, oldestUnminedSeconds }: SenderStatus): Markup =>
  facts(
    [
      ["Address", html`<code>${address}</code>`],
      ["Gas balance", balanceWei === null ? "unknown" : `${formatEther(balanceWei)} ETH`],
      ["Not mined yet", whole(unmined)],
      ...(oldestUnminedSeconds === null ? [] : [["Oldest of them", seconds(oldestUnminedSeconds)] as const]),
    ],
    "short",
  );

const jobsMark = (jobs: readonly JobHealth[]): Markup =>
  jobs.every(({ ok }) => ok) ? mark("pass", "Run") : mark("fail", "Some fail");

const jobFacts = (jobs: readonly JobHealth[]): Markup =>
  facts(
    jobs.map(({ name, ok, lastSuccessAt }) => [
      name,
      html`${ok ? "" : "Fails. "}${lastSuccessAt === null ? "Not done yet" : html`Last done ${instant(lastSuccessAt)}`}`,
    ]),
    "short",
  );

const paymentFacts = ({ payments }: ServiceStatus): Markup =>
  facts(
    [
      ["Outcome not yet known", whole(payments.unresolved)],
      [
        "Oldest of them",
        payments.oldestUnresolvedSeconds === null ? "none" : seconds(payments.oldestUnresolvedSeconds),
      ],
    ],
    "short",
  );
