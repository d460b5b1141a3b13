/** Routes by which anybody recomputes the books: terms, slice records, their leaves and their blocks. */
import type { FastifyRequest } from 'fastify';
import type { AnswerCache } from './answer-cache.ts';
import type { BooksView } from './books-view.ts';
import {
  PAGE,
  PARAMETERS,
  type Parameter,
  pageOfRequest,
  type Route,
  serviceOfPath,
  sliceOfPath,
  sliceOfQuery,
} from './route.ts';
import { cachedIn } from './send-answer.ts';

const MILLIS = 5_000;
const COVERED: Parameter = {
  name: 'slice',
  in: 'query',
  description: 'only payouts that carry the head of this slice or a later one',
  schema: { type: 'integer', minimum: 0 },
};

export function booksRoutes({ books, cache }: { books: BooksView; cache: AnswerCache }): Route[] {
  const cached = (build: (request: FastifyRequest) => Promise<unknown>) => cachedIn(cache)(MILLIS, build);
  const ofSlice = [PARAMETERS.service, PARAMETERS.slice];
  return [
    {
      method: 'GET',
      path: '/terms',
      group: 'Proofs',
      summary: 'The terms of the books and the slices from which they hold',
      handle: cached(() => books.terms()),
    },
    {
      method: 'GET',
      path: '/slices/:service',
      group: 'Proofs',
      summary: 'Records of closed slices with their credits, newest first',
      parameters: [PARAMETERS.service, ...PAGE],
      handle: cached((request) => books.slices(serviceOfPath(request), pageOfRequest(request))),
    },
    {
      method: 'GET',
      path: '/slices/:service/:slice/leaves',
      group: 'Proofs',
      summary: "A closed slice's work by account, in the order of its tree",
      parameters: [...ofSlice, ...PAGE],
      handle: cached((request) => books.leaves(serviceOfPath(request), sliceOfPath(request), pageOfRequest(request))),
    },
    {
      method: 'GET',
      path: '/slices/:service/:slice/blocks',
      group: 'Proofs',
      summary: 'Paid and held blocks whose anchors lie in a slice, each with the slice whose list credits it',
      parameters: ofSlice,
      handle: cached((request) => books.blocks(serviceOfPath(request), sliceOfPath(request))),
    },
    {
      method: 'GET',
      path: '/commitments',
      group: 'Proofs',
      summary:
        'Payouts by number with the head of the books that each carries to the ledger; all, or those that cover a slice',
      parameters: [COVERED, ...PAGE],
      handle: cached((request) => books.commitments(pageOfRequest(request), sliceOfQuery(request))),
    },
  ];
}
