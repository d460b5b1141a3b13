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
import { coins, count } from '../format.ts';
import { type WordKey, word } from '../words/language.ts';

type Outcome = { readonly tone: 'good' | 'bad' | 'note'; readonly text: string };

const MISSING: Readonly<Record<NotChecked, WordKey>> = {
  terms: 'proof.no_terms',
  records: 'proof.no_records',
  records_reach: 'proof.no_records_reach',
  target: 'proof.no_target',
  rewards: 'proof.no_rewards',
  other_service: 'proof.no_other_service',
  block_service: 'proof.no_block_service',
  later_list: 'proof.no_later_list',
  commitments: 'proof.no_commitments',
  solo_finder: 'proof.no_solo_finder',
};

export async function checkShare(address: string, credit: CreditDocument, node: string): Promise<Outcome> {
  const path = `proofs/${credit.service}/${credit.slice}?address=${encodeURIComponent(address)}`;
  const proof = await read<PoolProof>(path);
  if (proof.address !== address || proof.slice !== credit.slice || proof.service !== credit.service)
    return { tone: 'bad', text: word('proof.other') };
  let evidence: Awaited<ReturnType<typeof gatherEvidence>>;
  try {
    evidence = await gatherEvidence(proof, { pool: read, node: node === '' ? null : nodeReads(node) });
  } catch (error) {
    // No answer at all is a part that could not be checked; an answer that leaves out what the rules say is there is not.
    if (error instanceof PoolOmission) return { tone: 'bad', text: word('proof.omission', { reason: error.message }) };
    if (!(error instanceof ProtocolError || error instanceof TypeError)) throw error;
    return { tone: 'bad', text: word('proof.unreadable') };
  }
  const verdict = judgeProof(proof, evidence);
  if (verdict.verdict === 'false') return { tone: 'bad', text: word('proof.false', { reason: verdict.reason }) };
  if (verdict.credit.toString() !== credit.amount) return { tone: 'bad', text: word('proof.amount') };
  if (verdict.verdict === 'proven') {
    const fixed =
      verdict.committed === null
        ? word('proof.not_fixed')
        : word('proof.fixed', { height: count(verdict.committed.height) });
    const paid = word('proof.pays', { address: evidence.terms?.address ?? '–' });
    const proven = word('proof.proven', { credit: coins(credit.amount), reward: coins(proof.reward) });
    return { tone: 'good', text: `${proven} ${fixed} ${paid}` };
  }
  const why = verdict.missing.map((each) => word(MISSING[each])).join('; ');
  return { tone: 'note', text: word('proof.not_proven', { why }) };
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
        text: word('proof.not_checked', { reason: error.message }),
      })),
    );
    setBusy(false);
  };
  return (
    <>
      <button type="button" aria-disabled={busy} onClick={run}>
        {word('proof.check')}
        <span class="hidden-text"> {word('proof.of_slice', { slice: credit.slice })}</span>
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
      {word('proof.node')}{' '}
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
