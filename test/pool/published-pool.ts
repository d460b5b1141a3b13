/** What a pool publishes out of the books of the audit bed, without the web server around it; a liar changes answers. */
import { BooksView } from '../../pool/api/books/books-view.ts';
import { LedgerView } from '../../pool/api/books/ledger-view.ts';
import { ProofMaker } from '../../pool/api/books/proofs.ts';
import type { Sql } from '../../pool/database/connect.ts';
import { SERVICES } from '../../pool/journal/journal-record.ts';
import { parseAddress } from '../../protocol/address.ts';
import { POOL } from './audit-bed.ts';

export function publishedPool(sql: Sql, liar: (path: string, answer: unknown) => unknown = (_, answer) => answer) {
  const network = 'development';
  const view = new BooksView({ network, address: POOL }, { sql });
  const proofs = new ProofMaker({ network }, { sql });
  const payments = new LedgerView({ sql });
  const answer = async (path: string): Promise<unknown> => {
    const [route = '', words = ''] = path.split('?');
    const query = new URLSearchParams(words);
    const page = { cursor: query.get('cursor') ?? undefined, limit: Number(query.get('limit') ?? 50) };
    const [kind, name = '', number, what] = route.split('/');
    const service = SERVICES.indexOf(name as never);
    if (kind === 'terms') return view.terms();
    if (kind === 'commitments') {
      const slice = query.get('slice');
      return view.commitments(page, slice === null ? undefined : Number(slice));
    }
    if (kind === 'payments') return payments.payments(page, undefined);
    if (kind === 'proofs' && what === 'list') return proofs.list(service, Number(number), page);
    if (kind === 'proofs') {
      const address = query.get('address') as string;
      return proofs.proof(service, Number(number), parseAddress(address).payload, address);
    }
    if (what === 'leaves') return view.leaves(service, Number(number), page);
    if (what === 'blocks') return view.blocks(service, Number(number));
    return view.slices(service, page);
  };
  return async (path: string) => liar(path, JSON.parse(JSON.stringify(await answer(path))));
}
