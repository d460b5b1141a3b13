/** How routes answer: finished bytes with an ETag, from the answer cache or made for one request. */
import type { FastifyReply } from 'fastify';
import { type Answer, type AnswerCache, answerOf } from './answer-cache.ts';
import { answerKey, type Exchange, type Route } from './route.ts';

/** Documents that never change may be cached by browsers and proxies for a day. */
const FOREVER = 'public, max-age=86400, immutable';

const JSON_MEDIA = 'application/json; charset=utf-8';

/** A client that has the bytes already gets 304. */
function sendAnswer({ request, reply }: Exchange, answer: Answer, control: string, media = JSON_MEDIA): FastifyReply {
  reply.header('etag', answer.etag).header('cache-control', control);
  if (request.headers['if-none-match'] === answer.etag) return reply.code(304).send();
  return reply.header('content-type', media).send(answer.body);
}

/**
 * Adds caching to a route for the time it declares. Documents that never change are not cached here: they are large,
 * and readers cache them.
 */
export function keepingAnswers(route: Route, cache: AnswerCache): Route {
  const { keep, handle, media } = route;
  if (keep === undefined) return route;
  if (keep === 'forever')
    return {
      ...route,
      handle: async (input, exchange) => sendAnswer(exchange, answerOf(await handle(input, exchange)), FOREVER, media),
    };
  const control = `public, max-age=${Math.max(1, keep / 1000)}`;
  return {
    ...route,
    handle: async (input, exchange) =>
      sendAnswer(
        exchange,
        await cache.get(answerKey(exchange.request), keep, () => handle(input, exchange)),
        control,
        media,
      ),
  };
}
