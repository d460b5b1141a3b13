/** The payouts under way: why one waits, and what an operator can do about it. */
import { useState } from 'preact/hooks';
import type { OperatorStatus, PayoutAction, QueueDocument } from '../../pool/api/operator/operator-documents.ts';
import { coins, count } from '../format.ts';
import { Amount, Identifier, State, stateText, Table, When } from '../view/parts.tsx';
import { word } from '../words/language.ts';

/** Calls a route of the operator and reads everything again; false when it was refused, which the page then says. */
export type Act = (path: string, method: string, body?: object) => Promise<boolean>;

type Payout = QueueDocument['payouts'][number];

/** The operator is told what a button does before it is done. None of them can make the wallet pay twice. */
function doAction(payout: Payout, action: PayoutAction, act: Act): void {
  const [title, explained] = [word(`operator.${action}`), word(`operator.${action}_text`)];
  const whom = payout.items
    .map(({ address, amount }) => word('operator.amount_to', { coins: coins(amount), address }))
    .join('\n');
  const path = `payouts/${payout.payout_id}/${action}`;
  if (action === 'sent') {
    const transaction = window.prompt(`${title}: ${explained}\n\n${whom}\n\n${word('operator.transaction')}`)?.trim();
    if (transaction) void act(path, 'POST', { transaction_id: transaction });
  } else if (window.confirm(`${title}? ${explained}\n\n${whom}`)) void act(path, 'POST');
}

export function Queue({
  payouts,
  status,
  act,
}: {
  payouts: QueueDocument['payouts'];
  status: OperatorStatus;
  act: Act;
}) {
  const { payouts_paused: paused, payouts_held: held } = status;
  const [note, setNote] = useState('');
  const [asked, setAsked] = useState(false);
  const payNow = async () => {
    setAsked(false);
    setAsked(await act('pay-now', 'POST'));
  };
  const turn = async (event: Event) => {
    event.preventDefault();
    // The field for the note goes while payouts are paused; the keyboard stays here.
    (event.currentTarget as HTMLFormElement).querySelector('button')?.focus();
    const value = note.trim();
    const isNoted = paused || value === '' || (await act('settings', 'POST', { name: 'pause_note', value }));
    if (isNoted && (await act(paused ? 'resume' : 'pause', 'POST'))) setNote('');
  };
  return (
    <section class="card">
      <h2>{word('terms.payouts')}</h2>
      {held === null ? null : (
        <p class="banner" role="alert">
          {word('operator.held', { reason: held, command: 'svc-pool repair-payouts' })}
        </p>
      )}
      {status.accounts_refused.length === 0 ? null : (
        <p class="banner" role="alert">
          {word('operator.refused_accounts', {
            count: count(status.accounts_refused.length),
            command: 'svc-pool audit',
          })}
        </p>
      )}
      <form class="row" onSubmit={turn}>
        <strong class={paused || held !== null ? 'warn' : 'good'}>
          {paused || held === null ? word(paused ? 'operator.paused' : 'operator.running') : stateText('held')}
        </strong>
        {paused ? null : (
          <label class="grow">
            {word('operator.note_to_miners')}
            <input maxLength={500} value={note} onInput={(event) => setNote(event.currentTarget.value)} />
          </label>
        )}
        <button type="submit">{word(paused ? 'operator.resume' : 'operator.pause')}</button>
        <button type="button" aria-disabled={paused} onClick={() => paused || void payNow()}>
          {word('operator.pay_now')}
        </button>
      </form>
      <p role="status" class={asked ? 'note' : 'hidden-text'}>
        {asked ? word('operator.paying') : ''}
      </p>
      {payouts.length === 0 ? <p class="note">{word('operator.no_payouts')}</p> : null}
      <Table
        hidden={payouts.length === 0}
        caption={word('operator.sheet_in_flight')}
        columns={[
          { title: word('operator.made'), cell: (payout) => <When millis={payout.created_millis} /> },
          { title: word('operator.payout'), minor: true, cell: (payout) => <Identifier id={payout.payout_id} /> },
          { title: word('operator.recipients'), number: true, minor: true, cell: (payout) => count(payout.recipients) },
          { title: word('pay.coins'), number: true, cell: (payout) => <Amount atoms={payout.total} /> },
          { title: word('blocks.state'), cell: (payout) => <State state={payout.state} /> },
          { title: word('operator.attention'), wide: true, cell: (payout) => <Trouble payout={payout} /> },
          {
            title: word('operator.action'),
            cell: (payout) =>
              payout.actions.map((action) => (
                <button
                  key={action}
                  type="button"
                  title={word(`operator.${action}_text`)}
                  aria-label={word('operator.action_on', {
                    action: word(`operator.${action}`),
                    payout: payout.payout_id,
                  })}
                  onClick={() => doAction(payout, action, act)}
                >
                  {word(`operator.${action}`)}
                </button>
              )),
          },
        ]}
        rows={payouts}
        keyOf={(payout) => payout.payout_id}
      />
    </section>
  );
}

/** Why it waits, and for whom: a payout that needs a person is one recipient's. */
function Trouble({ payout }: { payout: Payout }) {
  if (payout.needs_person === null) return <>{payout.reason ?? '–'}</>;
  return (
    <>
      {payout.needs_person}
      {payout.items.map(({ address }) => (
        <div key={address} class="mono">
          {address}
        </div>
      ))}
    </>
  );
}
