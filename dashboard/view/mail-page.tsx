/**
 * The page opened by links in the pool's mails. Programs that open links in mails press no buttons: nothing happens
 * before a person presses one.
 */

import { useState } from 'preact/hooks';
import { read } from '../data/client.ts';
import { linkTo } from '../router.ts';
import { word } from '../words/language.ts';

export type MailAct = 'confirm' | 'stop';

export function MailPage({ act, code }: { act: MailAct; code: string }) {
  const [busy, setBusy] = useState(false);
  const [outcome, setOutcome] = useState<{
    readonly text: string;
    readonly address?: string;
    readonly isBad?: boolean;
  }>();
  const isDone = outcome !== undefined && outcome.isBad !== true;
  const press = async () => {
    if (busy || isDone) return;
    setBusy(true);
    setOutcome(
      await read<{ address: string }>(`mail/${act}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ code }),
      }).then(
        ({ address }) => ({ text: word(`mail.${act}_done`), address }),
        (error: Error) => ({ text: word('sign.nothing_changed', { reason: error.message }), isBad: true }),
      ),
    );
    setBusy(false);
  };
  return (
    <section class="card">
      <h1>{word(`place.${act}`)}</h1>
      <p>{word(`mail.${act}_text`)}</p>
      <button type="button" class="primary" aria-disabled={busy || isDone} onClick={press}>
        {word(`mail.${act}_button`)}
      </button>
      <p role="status" class={outcome === undefined ? '' : isDone ? 'good' : 'bad'}>
        {outcome?.text ?? ''}
      </p>
      {outcome?.address === undefined ? null : <a href={linkTo('miner', outcome.address)}>{word('mail.to_miner')}</a>}
    </section>
  );
}
