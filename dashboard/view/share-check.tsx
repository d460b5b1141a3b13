/** 'Check my share': the pool's proof of one credit, verified in the page with the same lines the pool and its audit use. */
import { useState } from 'preact/hooks';
import type { CreditDocument } from '../../pool/api/documents.ts';
import { checkPoolProof, type PoolProof } from '../../protocol/pool-proof.ts';
import { read } from '../data/client.ts';
import { coins } from '../format.ts';

type Outcome = { readonly good: boolean; readonly text: string };

export async function checkShare(address: string, credit: CreditDocument): Promise<Outcome> {
  const path = `proofs/${credit.service}/${credit.slice}?address=${encodeURIComponent(address)}`;
  const proof = await read<PoolProof>(path);
  if (proof.address !== address || proof.slice !== credit.slice || proof.service !== credit.service)
    return { good: false, text: 'The pool sent the proof of something else.' };
  const verdict = checkPoolProof(proof);
  if (!verdict.valid) return { good: false, text: `The proof does not hold: ${verdict.reason}.` };
  if (verdict.credit.toString() !== credit.amount)
    return { good: false, text: 'The proof holds for another amount than the pool shows.' };
  return { good: true, text: `Proven: ${coins(credit.amount)} of ${coins(proof.reward)} coins.` };
}

export function ShareCheck({ address, credit }: { address: string; credit: CreditDocument }) {
  const [busy, setBusy] = useState(false);
  const [outcome, setOutcome] = useState<Outcome>();
  const run = async () => {
    setBusy(true);
    setOutcome(
      await checkShare(address, credit).catch((error: Error) => ({ good: false, text: `No proof: ${error.message}.` })),
    );
    setBusy(false);
  };
  return (
    <>
      <button type="button" disabled={busy} onClick={run}>
        Check my share<span class="hidden-text"> of slice {credit.slice}</span>
      </button>{' '}
      <span role="status" class={outcome?.good ? 'good' : 'bad'}>
        {outcome?.text ?? ''}
      </span>
    </>
  );
}
