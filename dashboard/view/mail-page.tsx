/**
 * The page opened by links in the pool's mails. Programs that open links in mails press no buttons: nothing happens
 * before a person presses one.
 */
import { useState } from 'preact/hooks';
import { read } from '../data/client.ts';
import { linkTo } from '../router.ts';

export type MailAct = 'confirm' | 'stop';

const WORDS = {
  confirm: {
    title: 'Confirm your e-mail address',
    text: 'The pool will send notifications about your miner to this address. Every e-mail has a link to stop them.',
    button: 'Confirm',
    done: 'Confirmed: you will get notifications about your miner by e-mail.',
  },
  stop: {
    title: 'No more e-mail',
    text: 'The pool will delete this e-mail address. If you never confirmed it, this pool will not write to it again.',
    button: 'Stop the e-mails',
    done: 'Done: nothing more will be sent to this address.',
  },
} as const;

export function MailPage({ act, code }: { act: MailAct; code: string }) {
  const [busy, setBusy] = useState(false);
  const [outcome, setOutcome] = useState<{
    readonly text: string;
    readonly address?: string;
    readonly isBad?: boolean;
  }>();
  const { title, text, button, done } = WORDS[act];
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
        ({ address }) => ({ text: done, address }),
        (error: Error) => ({ text: `Nothing changed: ${error.message}.`, isBad: true }),
      ),
    );
    setBusy(false);
  };
  return (
    <section class="card">
      <h1>{title}</h1>
      <p>{text}</p>
      <button type="button" class="primary" aria-disabled={busy || isDone} onClick={press}>
        {button}
      </button>
      <p role="status" class={outcome === undefined ? '' : isDone ? 'good' : 'bad'}>
        {outcome?.text ?? ''}
      </p>
      {outcome?.address === undefined ? null : <a href={linkTo('miner', outcome.address)}>To the miner’s page</a>}
    </section>
  );
}
