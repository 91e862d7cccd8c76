import { Failure } from "./fields.ts";
import { readInputs } from "./inputs.ts";
import { errorLine, write } from "./report.ts";
import { verify } from "./verify.ts";

try {
  const inputs = readInputs(process.env);
  // `verify` runs without any package installed.
  const report =
    inputs.command === "verify" ? await verify(inputs) : await (await import("./certify.ts")).certify(inputs);
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
