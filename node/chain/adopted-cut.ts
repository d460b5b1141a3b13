/**
 * Takes a cut that a certificate proved elsewhere, with its blocks here, into the ledger: by a node that only follows
 * directly, by one with a consensus driver in the driver's turn (consensus/driver/driver.ts).
 */
import { equalBytes } from '../../protocol/bytes.ts';
import type { ProposedCut } from '../../protocol/consensus/proposal.ts';
import type { Certificate } from '../../protocol/ledger/cut.ts';
import type { CutLedger } from './cut-ledger.ts';

/** `final`: it is in the ledger, by whichever way. `later`: it cannot be the next one now, or its blocks are not all here. */
export type Adopted = 'final' | 'later' | { readonly invalid: string };

export type Adopt = (cut: ProposedCut, certificate: Certificate) => Promise<Adopted>;

/** What is known of the cut before it is executed; undefined if it is the next one and can be executed. */
function adoptedBefore(ledger: CutLedger, { header: { height }, cutId, blockIds }: ProposedCut) {
  const head = ledger.head().height;
  if (height > head) return height === head + 1 && blockIds.every((id) => ledger.isHere(id)) ? undefined : 'later';
  const own = ledger.cut(height);
  return own !== undefined && equalBytes(own.cutId, cutId)
    ? 'final'
    : { invalid: 'another cut of its height is final' };
}

/** `execute`: by the desk of a driver, which may have executed the cut already. */
export const adoptInto =
  (ledger: CutLedger, execute: CutLedger['execute'] = (cut) => ledger.execute(cut)): Adopt =>
  async (cut, certificate) => {
    const before = adoptedBefore(ledger, cut);
    if (before !== undefined) return before;
    const applied = execute(cut);
    if (applied === undefined) return 'later';
    if (typeof applied === 'string') return { invalid: applied };
    await ledger.commit(applied, certificate);
    return 'final';
  };
