// The rules of the house. `docs/architecture.md` has the reasons.

/** A slice is a folder of `api/`; the platform has no feature in it. */
const SLICE = "^api/(?!platform/)([^/]+)/";

export default {
  forbidden: [
    {
      name: "no-value-cycles",
      comment: "Two files that need each other's values load in an order that depends on who asks first.",
      severity: "error",
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ["type-only"] } },
    },
    {
      name: "no-folder-cycles",
      comment: "Two top folders, or two slices, must not import each other, not even for a type.",
      severity: "error",
      scope: "folder",
      from: { path: "^(api/)?[^/]+$" },
      to: { path: "^(api/)?[^/]+$", circular: true },
    },
    {
      name: "slices-by-their-index",
      comment: "A slice shows the others its index.ts; everything else may change without them.",
      severity: "error",
      from: { path: SLICE },
      to: { path: "^api/(?!platform/)([^/]+)/", pathNot: ["^api/$1/", "^api/[^/]+/index\\.ts$"] },
    },
    {
      name: "the-platform-knows-no-slice",
      severity: "error",
      from: { path: "^api/platform/" },
      to: { path: "^api/", pathNot: "^api/platform/" },
    },
    {
      name: "sql-in-stores",
      comment: "Queries stand in store.ts and *-store.ts; index.ts hands the pool on.",
      severity: "error",
      from: { path: SLICE, pathNot: "(^|/|-)(store|index)\\.ts$|^api/operations/probes\\.ts$" },
      to: {
        dependencyTypesNot: ["type-only"],
        path: "(^|node_modules/)pg(/|$)|^api/platform/db/(connection|presence|seal)\\.ts$",
      },
    },
    {
      name: "http-in-routes",
      comment: "Hono is for routes.ts, *-routes.ts, and the answers of payments.",
      severity: "error",
      from: { path: SLICE, pathNot: "(^|/|-)(routes|index)\\.ts$|^api/payments/(payable|answers|admission)\\.ts$" },
      to: { path: "(^|node_modules/)(hono|@hono)(/|$)" },
    },
    {
      name: "a-rule-is-pure",
      comment: "Files, sockets, processes and timers are for the platform; a rule gets what it decides on.",
      severity: "error",
      from: {
        path: SLICE,
        pathNot: "(^|/|-)(store|chain|web|index|routes|tarballs)\\.ts$|^api/operations/probes\\.ts$",
      },
      to: { path: "^(node:)?(fs|net|http|https|child_process|timers|os|dns|tls|worker_threads|readline)(/promises)?$" },
    },
    {
      name: "verdicts-know-no-scores",
      comment: "What decides a verdict knows neither scores nor certificates.",
      severity: "error",
      from: { path: "^api/arbiter/(policy/|(claim|attestation|evidence|gather-evidence)\\.ts$)" },
      to: { path: "^api/(score|certificates)/", reachable: true },
    },
    {
      name: "packages-stand-alone",
      comment: "A package is installed without the service.",
      severity: "error",
      from: { path: "^packages/([^/]+)/" },
      to: {
        path: "^(api|bench|indexer|packages|scripts|test)/",
        // The verifier is compiled into the tarballs of the others, the terms of a hold into the exam, and the
        // headers and bytes of the escrow's middleware into replayable's.
        pathNot: [
          "^packages/$1/",
          "^packages/(verifier|seller-check)/src/(index|networks|requirement|fetch-text|strict-json|vocabulary)\\.ts$",
          "^packages/escrow/src/(authorization|bytes|canonical|contest-terms|own-headers|payment-info)\\.ts$",
        ],
      },
    },
    {
      name: "the-verifier-runs-in-browsers",
      severity: "error",
      from: { path: "^packages/verifier/src/", pathNot: "/(cli\\.ts|commands/[^/]+)$" },
      to: { path: "^node:|/(cli\\.ts|commands/[^/]+)$" },
    },
    {
      name: "mcp-serves-no-keys",
      comment: "The tools that the service serves reach no code that signs.",
      severity: "error",
      from: { path: "^packages/mcp/src/(free-server|tools/free)\\.ts$" },
      to: {
        path: "node_modules/@x402/|viem/accounts|packages/mcp/src/(cli|pending-payments|state-folder)\\.ts$",
        reachable: true,
      },
    },
    {
      name: "telemetry-is-loaded-late",
      comment: "OpenTelemetry's packages cost memory and time, so they are loaded only where a collector is named.",
      severity: "error",
      from: { path: "^(api|scripts|indexer)/", pathNot: "^api/platform/telemetry/otel\\.ts$" },
      to: {
        dependencyTypesNot: ["type-only"],
        path: "^api/platform/telemetry/otel\\.ts$",
        dynamic: false,
      },
    },
    {
      name: "only-benches-import-benches",
      severity: "error",
      from: { pathNot: "^bench/" },
      to: { path: "^bench/" },
    },
    {
      name: "tests-are-a-leaf",
      severity: "error",
      from: { path: "^(api|contracts|ignition|indexer|packages|scripts)/" },
      to: { path: "^test/" },
    },
    {
      name: "the-api-knows-no-indexer",
      comment: "They meet in the database.",
      severity: "error",
      from: { path: "^api/" },
      to: { path: "^(indexer|scripts|bench)/" },
    },
    {
      name: "the-indexer-knows-no-slice",
      comment: "It shares the platform's readers of settings and chains, and runs nothing of a feature.",
      severity: "error",
      from: { path: "^indexer/" },
      to: { dependencyTypesNot: ["type-only"], path: "^api/(?!platform/)" },
    },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    exclude: { path: "(^|/)(dist|artifacts|cache|\\.data|tarballs)/" },
    tsPreCompilationDeps: true,
    parser: "swc",
    combinedDependencies: true,
    enhancedResolveOptions: { exportsFields: ["exports"], conditionNames: ["import", "node", "default"] },
  },
};
