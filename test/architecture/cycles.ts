/** Who imports what: a node, and those that it leads to. */
export type Graph = ReadonlyMap<string, readonly string[]>;

/** The groups of nodes that lead to each other (Tarjan's strongly connected components of more than one), each sorted. */
export function cyclesOf(graph: Graph): string[][] {
  const cycles: string[][] = [];
  const open: string[] = [];
  const numbers = new Map<string, number>();
  /** The lowest number of an open node that can be reached from this one. */
  const visit = (node: string): number => {
    const own = numbers.size;
    numbers.set(node, own);
    open.push(node);
    let lowest = own;
    for (const next of graph.get(node) ?? []) {
      if (!numbers.has(next)) lowest = Math.min(lowest, visit(next));
      else if (open.includes(next)) lowest = Math.min(lowest, numbers.get(next) ?? own);
    }
    if (lowest === own) {
      const group = open.splice(open.indexOf(node));
      if (group.length > 1) cycles.push(group.sort());
    }
    return lowest;
  };
  for (const node of graph.keys()) if (!numbers.has(node)) visit(node);
  return cycles;
}
