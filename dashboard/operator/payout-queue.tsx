/** The payouts under way: why one waits, and what an operator can do about it. */
import { useState } from 'preact/hooks';
import type { OperatorStatus, PayoutAction, QueueDocument } from '../../pool/api/operator/operator-documents.ts';
import { coins, count } from '../format.ts';
import { Amount, Identifier, State, Table, When } from '../view/parts.tsx';

/** Calls a route of the operator and reads everything again; false when it was refused, which the page then says. */
export type Act = (path: string, method: string, body?: object) => Promise<boolean>;

type Payout = QueueDocument['payouts'][number];

/** What each button does, and what the operator should know before pressing it. None of them can make the wallet pay twice. */
const ACTIONS: Readonly<Record<PayoutAction, { readonly title: string; readonly explained: string }>> = {
  release: {
    title: 'Release (ask the wallet again)',
    explained:
      'Asks the wallet to pay this payout again. If it was asked before, the same payout number is used, so nothing is paid twice.',
  },
  void: {
    title: 'Return to balances',
    explained:
      'The amounts are returned to the miners’ balances and become due again. The wallet is asked first; a payout that it has already paid is never returned.',
  },
  sent: {
    title: 'Mark as sent',
    explained:
      'Use this if you know the transaction that paid this payout. It is accepted only if the wallet knows it and it pays exactly these recipients.',
  },
};

function doAction(payout: Payout, action: PayoutAction, act: Act): void {
  const { title, explained } = ACTIONS[action];
  const whom = payout.items.map(({ address, amount }) => `${coins(amount)} to ${address}`).join('\n');
  const path = `payouts/${payout.payout_id}/${action}`;
  if (action === 'sent') {
    const transaction = window.prompt(`${title}: ${explained}\n\n${whom}\n\nTransaction:`)?.trim();
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
      <h2>Payouts</h2>
      {held === null ? null : (
        <p class="banner" role="alert">
          Nothing is paid: {held}. Run svc-pool repair-payouts to see what differs.
        </p>
      )}
      {status.accounts_refused.length === 0 ? null : (
        <p class="banner" role="alert">
          Accounts not paid because their books fail the audit: {status.accounts_refused.length}. Run svc-pool audit,
          put the books right, then release their payouts below.
        </p>
      )}
      <form class="row" onSubmit={turn}>
        <strong class={paused || held !== null ? 'warn' : 'good'}>
          {paused ? 'paused' : held === null ? 'running' : 'held'}
        </strong>
        {paused ? null : (
          <label class="grow">
            Note to miners (may be empty)
            <input maxLength={500} value={note} onInput={(event) => setNote(event.currentTarget.value)} />
          </label>
        )}
        <button type="submit">{paused ? 'Resume payouts' : 'Pause payouts'}</button>
        <button type="button" aria-disabled={paused} onClick={() => paused || void payNow()}>
          Pay now
        </button>
      </form>
      <p role="status" class={asked ? 'note' : 'hidden-text'}>
        {asked ? 'Balances that have reached the minimum are paid within seconds.' : ''}
      </p>
      {payouts.length === 0 ? <p class="note">No payouts in progress.</p> : null}
      <Table
        hidden={payouts.length === 0}
        caption="Payouts under way"
        columns={[
          { title: 'Made', cell: (payout) => <When millis={payout.created_millis} /> },
          { title: 'Payout', minor: true, cell: (payout) => <Identifier id={payout.payout_id} /> },
          { title: 'Recipients', number: true, minor: true, cell: (payout) => count(payout.recipients) },
          { title: 'Coins', number: true, cell: (payout) => <Amount atoms={payout.total} /> },
          { title: 'State', cell: (payout) => <State state={payout.state} /> },
          { title: 'Needs attention', wide: true, cell: (payout) => <Trouble payout={payout} /> },
          {
            title: 'Action',
            cell: (payout) =>
              payout.actions.map((action) => (
                <button
                  key={action}
                  type="button"
                  title={ACTIONS[action].explained}
                  aria-label={`${ACTIONS[action].title}: ${payout.payout_id}`}
                  onClick={() => doAction(payout, action, act)}
                >
                  {ACTIONS[action].title}
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
