/**
 * 'Check my share': the pool's proof of one credit, checked in the page by the same code that the audit and the miner
 * use.
 */
import { useState } from 'preact/hooks';
import type { CreditDocument } from '../../pool/api/documents.ts';
import { gatherEvidence } from '../../protocol/books/books-evidence.ts';
import { judgeProof, type NotChecked } from '../../protocol/books/books-verdict.ts';
import type { PoolProof } from '../../protocol/books/pool-proof.ts';
import { PoolOmission } from '../../protocol/books/pool-silence.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { read } from '../data/client.ts';
import { checkNode, nodeReads, rememberCheckNode } from '../data/node.ts';
import { coins } from '../format.ts';

type Outcome = { readonly tone: 'good' | 'bad' | 'note'; readonly text: string };

const MISSING: Readonly<Record<NotChecked, string>> = {
  terms: 'the pool’s terms could not be read',
  records: 'the pool’s slice records could not be read',
  records_reach: 'the slice records do not reach back far enough',
  target: 'the target was not compared with a node',
  rewards: 'the rewards were not compared with a node',
  other_service: 'the blocks of the other mode could not be read',
  block_service: 'which mode a block was found in could not be compared with a node',
  later_list:
    'the pool says that it holds back the reward of a block of this slice, or credits it in a later list; check that list too',
  commitments: 'the records of the books in payouts could not be compared with a node',
  solo_finder: 'only the pool and the finder know who found a solo block',
};

export async function checkShare(address: string, credit: CreditDocument, node: string): Promise<Outcome> {
  const path = `proofs/${credit.service}/${credit.slice}?address=${encodeURIComponent(address)}`;
  const proof = await read<PoolProof>(path);
  if (proof.address !== address || proof.slice !== credit.slice || proof.service !== credit.service)
    return { tone: 'bad', text: 'The pool sent a proof of something else.' };
  let evidence: Awaited<ReturnType<typeof gatherEvidence>>;
  try {
    evidence = await gatherEvidence(proof, { pool: read, node: node === '' ? null : nodeReads(node) });
  } catch (error) {
    // No answer at all is a part that could not be checked; an answer that leaves out what the rules say is there is not.
    if (error instanceof PoolOmission)
      return { tone: 'bad', text: `Not proven: ${error.message}, and the check needs them. Try again later.` };
    if (!(error instanceof ProtocolError || error instanceof TypeError)) throw error;
    return { tone: 'bad', text: 'False: the pool’s own documents cannot be read.' };
  }
  const verdict = judgeProof(proof, evidence);
  if (verdict.verdict === 'false') return { tone: 'bad', text: `False: the proof does not hold (${verdict.reason}).` };
  if (verdict.credit.toString() !== credit.amount)
    return { tone: 'bad', text: 'False: the proof is for a different amount from the one that the pool shows.' };
  if (verdict.verdict === 'proven') {
    const fixed =
      verdict.committed === null
        ? 'No payout has written these books to the ledger yet.'
        : `A payout of cut ${verdict.committed.height} wrote these books to the ledger.`;
    const paid = `Blocks of this pool pay ${evidence.terms?.address}. To be sure that your miner works for this address, start it with --expect-payout and this address.`;
    return {
      tone: 'good',
      text: `Proven: ${coins(credit.amount)} of ${coins(proof.reward)} coins. ${fixed} ${paid}`,
    };
  }
  const why = verdict.missing.map((each) => MISSING[each]).join('; ');
  return { tone: 'note', text: `No fault found, but not proven: ${why}.` };
}

export function ShareCheck({ address, credit }: { address: string; credit: CreditDocument }) {
  const [busy, setBusy] = useState(false);
  const [outcome, setOutcome] = useState<Outcome>();
  const run = async () => {
    if (busy) return;
    setBusy(true);
    setOutcome(
      await checkShare(address, credit, checkNode()).catch((error: Error) => ({
        tone: 'bad' as const,
        text: `Not checked: ${error.message}.`,
      })),
    );
    setBusy(false);
  };
  return (
    <>
      <button type="button" aria-disabled={busy} onClick={run}>
        Check my share<span class="hidden-text"> of slice {credit.slice}</span>
      </button>{' '}
      <span role="status" class={outcome?.tone ?? ''}>
        {outcome?.text ?? ''}
      </span>
    </>
  );
}

/** The node that the rewards are compared with. */
export function CheckNode() {
  const [url, setUrl] = useState(checkNode());
  return (
    <label>
      Node to compare with{' '}
      <input
        type="url"
        value={url}
        placeholder="http://127.0.0.1:28701"
        onInput={(event) => {
          setUrl(event.currentTarget.value.trim());
          rememberCheckNode(event.currentTarget.value.trim());
        }}
      />
    </label>
  );
}
