// A witness of transparency logs (C2SP tlog-witness): `npm run witness`. docs/log.md explains how to run one for another service's log.

import { openRecords } from "./witness/records.ts";
import { createWitnessServer } from "./witness/server.ts";
import { readWitnessSettings } from "./witness/settings.ts";
import { noteSigner } from "./witness/signer.ts";

const settings = readWitnessSettings(process.env);
if ("problem" in settings) {
  console.error(settings.problem);
  process.exit(1);
}
const { name, seed, logs, stateFile, port, host } = settings;
const signer = await noteSigner(name, "witness", seed);
const records = openRecords(stateFile);
const server = createWitnessServer({ signer, logs, records, now: () => new Date() }, (error) => console.error(error));
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => {
    server.close(() => records.close());
    server.closeIdleConnections();
  });
server.on("error", (error) => {
  console.error(`WITNESS_PORT ${port} cannot be used: ${error.message}`);
  process.exit(1);
});
server.listen(port, host, () => console.log(`witness ${signer.key.vkey} listens on ${host}:${port}`));
