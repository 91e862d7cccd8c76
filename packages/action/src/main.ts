import { Failure } from "./fields.ts";
import { readInputs } from "./inputs.ts";
import { errorLine, mask, type Report, write } from "./report.ts";
import { verify } from "./verify.ts";

/** `verify` runs without any package installed. */
async function carryOut(inputs: ReturnType<typeof readInputs>): Promise<Report> {
  switch (inputs.command) {
    case "verify":
      return verify(inputs);
    case "certify":
      return (await import("./certify.ts")).certify(inputs);
    case "examine":
      return (await import("./examine.ts")).examine(inputs);
  }
}

try {
  const inputs = readInputs(process.env);
  if (inputs.command !== "verify") mask(inputs.privateKey, process.env);
  const report = await carryOut(inputs);
  await write(report, process.env);
  if (report.failure !== null) throw new Failure(report.failure);
  console.log(
    Object.entries(report.outputs)
      .map(([name, value]) => `${name}: ${value}`)
      .join("\n"),
  );
} catch (error) {
  console.log(errorLine(error instanceof Failure ? error.message : `Unexpected error: ${String(error)}`));
  process.exitCode = 1;
}
