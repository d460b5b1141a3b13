/** Routes from which anybody can recompute the books: terms, slice records, their leaves and their blocks. */
import { described, object, optional } from '../../../protocol/api/schema.ts';
import { FIELDS, ofSlice, PAGE_FIELDS, paged, pageOfQuery, type Route, route, serviceNumber } from '../route.ts';
import * as b from './books-documents.ts';
import type { BooksView } from './books-view.ts';

const MILLIS = 5_000;

export function booksRoutes({ books }: { books: BooksView }): Route[] {
  return [
    route({
      method: 'GET',
      path: '/terms',
      group: 'Proofs',
      summary: 'The terms of the books and the slices from which they hold',
      answer: b.terms,
      keep: MILLIS,
      handle: () => books.terms(),
    }),
    route({
      method: 'GET',
      path: '/slices/:service',
      group: 'Proofs',
      summary: 'Records of closed slices with their credits, newest first',
      params: object({ service: FIELDS.service }),
      query: paged,
      answer: b.slices,
      keep: MILLIS,
      handle: ({ params, query }) => books.slices(serviceNumber(params.service), pageOfQuery(query)),
    }),
    route({
      method: 'GET',
      path: '/slices/:service/:slice/leaves',
      group: 'Proofs',
      summary: "A closed slice's work by account, in the order of its tree",
      params: ofSlice,
      query: paged,
      answer: b.leaves,
      keep: MILLIS,
      handle: ({ params, query }) => books.leaves(serviceNumber(params.service), params.slice, pageOfQuery(query)),
    }),
    route({
      method: 'GET',
      path: '/slices/:service/:slice/blocks',
      group: 'Proofs',
      summary: 'Paid and held blocks whose anchors lie in a slice, each with the slice whose list credits it',
      params: ofSlice,
      answer: b.sliceBlocks,
      keep: MILLIS,
      handle: ({ params }) => books.blocks(serviceNumber(params.service), params.slice),
    }),
    route({
      method: 'GET',
      path: '/commitments',
      group: 'Proofs',
      summary:
        'Payouts by number with the head of the books that each carries to the ledger; all, or those that cover a slice',
      query: object({
        slice: optional(described(FIELDS.slice, 'only payouts that carry the head of this slice or a later one')),
        ...PAGE_FIELDS,
      }),
      answer: b.commitments,
      keep: MILLIS,
      handle: ({ query }) => books.commitments(pageOfQuery(query), query.slice),
    }),
  ];
}
