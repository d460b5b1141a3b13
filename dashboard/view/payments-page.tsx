/** Payments of the pool, of all or of one address, in pages. */

import { useState } from 'preact/hooks';
import type { PaymentDocument, PaymentsDocument } from '../../pool/api/documents.ts';
import { formatCoins } from '../../protocol/amount.ts';
import { query } from '../data/client.ts';
import { type CsvColumn, csvTime } from '../data/csv.ts';
import { useDocument } from '../data/hooks.ts';
import { ChainLink, CutLink } from '../explorer/links.tsx';
import { shortName } from '../format.ts';
import { explorerLink } from '../router.ts';
import { word } from '../words/language.ts';
import { CsvButton } from './csv-button.tsx';
import {
  Amount,
  type Column,
  EnteredText,
  ListSaid,
  MinerLink,
  Pager,
  Placeholder,
  State,
  Table,
  When,
} from './parts.tsx';

/** Leads to the chain, also where there is no room for the id. */
const stateOf = ({ state, transaction_id: id }: PaymentDocument) =>
  id === null ? (
    <State state={state} />
  ) : (
    <a href={explorerLink('transaction', id)} title={word('pay.transaction_title')}>
      <State state={state} />
    </a>
  );

/** `own`: on a miner’s page, where the recipient is known. */
const columnsOf = (own: boolean): Column<PaymentDocument>[] => [
  { title: word('pay.time'), cell: (payment) => <When millis={payment.created_millis} /> },
  ...(own
    ? []
    : [{ title: word('pay.to'), cell: (payment: PaymentDocument) => <MinerLink address={payment.address} /> }]),
  { title: word('pay.coins'), number: true, cell: (payment) => <Amount atoms={payment.amount} /> },
  { title: word('blocks.state'), cell: stateOf },
  {
    title: word('place.transaction'),
    minor: true,
    cell: (payment) =>
      payment.transaction_id === null ? '–' : <ChainLink kind="transaction" id={payment.transaction_id} />,
  },
  {
    title: word('pay.final'),
    minor: true,
    number: true,
    cell: (payment) => (payment.final_height === null ? '–' : <CutLink height={payment.final_height} />),
  },
];

const PAYMENTS_CSV: CsvColumn<PaymentDocument>[] = [
  ['created', (payment) => csvTime(payment.created_millis)],
  ['address', (payment) => payment.address],
  ['amount_coins', (payment) => formatCoins(BigInt(payment.amount))],
  ['state', (payment) => payment.state],
  ['transaction', (payment) => payment.transaction_id],
  ['final_cut', (payment) => payment.final_height],
];

export function Payments({ address, own = false }: { address: string | undefined; own?: boolean }) {
  const [cursor, setCursor] = useState<string>();
  const payments = useDocument<PaymentsDocument>(`payments${query({ address, cursor, limit: 50 })}`);
  const rows = payments.data?.payments ?? [];
  return (
    <section class="card">
      <div class="row head">
        <h2>{word('nav.payments')}</h2>
        <CsvButton
          name={address === undefined ? 'payments' : `payments-${shortName(address)}`}
          columns={PAYMENTS_CSV}
          pathOf={(cursor) => `payments${query({ address, cursor, limit: 200 })}`}
          rowsOf={(document: PaymentsDocument) => document.payments}
          feed={`feeds/payments.atom${query({ address })}`}
        />
      </div>
      <ListSaid rows={payments.data?.payments} what={word('pay.payments')} />
      {rows.length === 0 ? (
        <Placeholder error={payments.error} loading={payments.data === undefined} empty={word('pay.none')} />
      ) : (
        <Table
          caption={word('pay.newest')}
          columns={columnsOf(own)}
          rows={rows}
          keyOf={(payment) => `${payment.payout_id}/${payment.address}`}
        />
      )}
      <Pager cursor={cursor} next={payments.data?.next_cursor} onMove={setCursor} />
    </section>
  );
}

export function PaymentsPage() {
  const [address, setAddress] = useState('');
  return (
    <>
      <h1>{word('nav.payments')}</h1>
      <div class="row">
        <EnteredText label={word('place.address')} value={address} onEnter={setAddress} />
      </div>
      <Payments key={address} address={address === '' ? undefined : address} />
    </>
  );
}
