/** Totals that are kept elsewhere, as counters of the metrics. */

/** A total from the database as a counter: it grows by what was added since the last read. */
export function readTotal(add: (amount: number) => void): (total: number) => void {
  let known = 0;
  return (total) => {
    if (total <= known) return;
    add(total - known);
    known = total;
  };
}

export function readTotals(add: (amount: number, label: string) => void): (total: number, label: string) => void {
  const totals = new Map<string, (total: number) => void>();
  return (total, label) => {
    const set = totals.get(label) ?? readTotal((amount) => add(amount, label));
    totals.set(label, set);
    set(total);
  };
}
