/** How routes answer: finished bytes with an ETag, from the answer cache or made for one request. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Answer, AnswerCache } from './answer-cache.ts';
import { answerKey, type Charge } from './route.ts';

/** A client that has the bytes already gets 304. */
export function sendAnswer(
  request: FastifyRequest,
  reply: FastifyReply,
  answer: Answer,
  control: string,
): FastifyReply {
  reply.header('etag', answer.etag).header('cache-control', control);
  if (request.headers['if-none-match'] === answer.etag) return reply.code(304).send();
  return reply.header('content-type', 'application/json; charset=utf-8').send(answer.body);
}

/** A handler whose answers are kept for `millis`, here and by browsers and proxies. */
export const cachedIn =
  (cache: AnswerCache) =>
  (millis: number, build: (request: FastifyRequest, charge: Charge) => Promise<unknown>) =>
  async (request: FastifyRequest, reply: FastifyReply, charge: Charge): Promise<FastifyReply> =>
    sendAnswer(
      request,
      reply,
      await cache.get(answerKey(request), millis, () => build(request, charge)),
      `public, max-age=${Math.max(1, millis / 1000)}`,
    );
