/** What a tlog-policy is made of. */
export interface PolicyParts {
  readonly log: { readonly vkey: string; readonly url: string };
  readonly witnesses: readonly { readonly name: string; readonly vkey: string }[];
  /** How many of the witnesses must have cosigned. */
  readonly quorum: number;
}

/** A policy file (C2SP tlog-policy) that trusts this log as soon as enough of its witnesses have cosigned. */
export function policyText({ log, witnesses, quorum }: PolicyParts): string {
  const lines = [`log ${log.vkey} ${log.url}`];
  if (witnesses.length === 0 || quorum === 0) return `${[...lines, "quorum none"].join("\n")}\n`;
  const names = witnesses.map(({ name }, place) => (isFree(name, witnesses) ? name : ownName(place, witnesses)));
  lines.push(...witnesses.map(({ vkey }, place) => `witness ${names[place]} ${vkey}`));
  if (names.length === 1) return `${[...lines, `quorum ${names[0]}`].join("\n")}\n`;
  return `${[...lines, `group ${QUORUM} ${quorum} ${names.join(" ")}`, `quorum ${QUORUM}`].join("\n")}\n`;
}

const QUORUM = "enough-witnesses";

/** One that no witness has, and no other place. */
function ownName(place: number, witnesses: PolicyParts["witnesses"]): string {
  let own = `witness-${place + 1}`;
  while (witnesses.some(({ name }) => name === own)) own += "-";
  return own;
}

/** Whether a key's name can stand for its witness in the file: no other one has it, and it means nothing else there. */
const isFree = (name: string, witnesses: PolicyParts["witnesses"]): boolean =>
  name !== "none" && name !== QUORUM && witnesses.filter((one) => one.name === name).length === 1;
