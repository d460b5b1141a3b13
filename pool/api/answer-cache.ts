/**
 * Answers kept as finished bytes with their ETag. One build at a time per key, for any number of requests; while an
 * answer is rebuilt, the old one is served. Bounded in number and bytes: the least recently used are dropped first.
 * Refusals are not cached.
 */
import { hash } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import { answerKey, type Exchange, type Route } from './route.ts';

export type Answer = { readonly body: Buffer; readonly etag: string };

type Kept = { answer: Answer | undefined; atMillis: number; building: Promise<Answer> | undefined };

export const ANSWER_CACHE_DEFAULTS = { capacity: 2_000, maxBytes: 256 * 1024, totalBytes: 32 * 1024 * 1024 } as const;

/** A text is taken as it is: it is of a route with a media type of its own. */
export const answerOf = (value: unknown): Answer => {
  const body = Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
  return { body, etag: `"${hash('sha256', body, 'base64url').slice(0, 22)}"` };
};

export class AnswerCache {
  readonly #kept = new Map<string, Kept>();
  readonly #capacity: number;
  readonly #totalBytes: number;
  #bytes = 0;
  readonly #now: SteadyClock;

  constructor(options: { capacity?: number; totalBytes?: number }, dependencies: { now: SteadyClock }) {
    this.#capacity = options.capacity ?? ANSWER_CACHE_DEFAULTS.capacity;
    this.#totalBytes = options.totalBytes ?? ANSWER_CACHE_DEFAULTS.totalBytes;
    this.#now = dependencies.now;
  }

  async get(key: string, maxAgeMillis: number, build: () => Promise<unknown>): Promise<Answer> {
    const kept = this.#kept.get(key) ?? { answer: undefined, atMillis: 0, building: undefined };
    this.#kept.delete(key);
    this.#kept.set(key, kept);
    this.#trim();
    const age = this.#now() - kept.atMillis;
    if (kept.answer !== undefined && age >= 0 && age < maxAgeMillis) return kept.answer;
    kept.building ??= this.#build(key, kept, build);
    // Up to twice the maximum age the stale answer is served while a new one is built; beyond that the request waits.
    if (kept.answer !== undefined && age >= 0 && age < 2 * maxAgeMillis) {
      kept.building.catch(() => undefined);
      return kept.answer;
    }
    return kept.building;
  }

  /** Drops all answers; builds under way are not kept. */
  clear(): void {
    this.#kept.clear();
    this.#bytes = 0;
  }

  /** How many answers are kept, and their bytes. */
  get size(): { readonly answers: number; readonly bytes: number } {
    return { answers: this.#kept.size, bytes: this.#bytes };
  }

  async #build(key: string, kept: Kept, build: () => Promise<unknown>): Promise<Answer> {
    try {
      const answer = answerOf(await build());
      if (this.#kept.get(key) === kept) this.#bytes += answer.body.length - (kept.answer?.body.length ?? 0);
      kept.answer = answer;
      kept.atMillis = this.#now();
      // Large answers are rare, and a few thousand of them would fill memory: they are not kept.
      if (answer.body.length > ANSWER_CACHE_DEFAULTS.maxBytes) this.#drop(key, kept);
      this.#trim();
      return answer;
    } catch (error) {
      this.#drop(key, kept);
      throw error;
    } finally {
      kept.building = undefined;
    }
  }

  #drop(key: string, kept: Kept): void {
    if (this.#kept.get(key) !== kept) return;
    this.#kept.delete(key);
    this.#bytes -= kept.answer?.body.length ?? 0;
  }

  #trim(): void {
    for (const [key, kept] of this.#kept) {
      if (this.#kept.size <= this.#capacity && this.#bytes <= this.#totalBytes) return;
      this.#drop(key, kept);
    }
  }
}

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
