/**
 * Messages between instances: each instance numbers its own, and receivers ignore numbers that do not increase. So an
 * attacker who can write to Redis cannot lift a ban by replaying an old 'unban'.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { type Codec, choice, count, decode, encode, struct, text } from './codec.ts';
import type { Seal } from './seal.ts';
import type { News } from './shared-state.ts';
import type { UnreadValues } from './unread-values.ts';

/** Instances whose last number is remembered; far more than ever run in the lifetime of one. */
const MAX_INSTANCES = 4_096;
const NAME = 'news';

type Of<K extends News['kind']> = Omit<Extract<News, { kind: K }>, 'kind'>;

const kind = choice(['ban', 'unban', 'block']);
const ban = struct<Of<'ban'>>({ key: text(128), untilMillis: count });
const unban = struct<Of<'unban'>>({ key: text(128) });
const block = struct<Of<'block'>>({ service: text(16), blockId: text(128), anchorHeight: count });

const news: Codec<News> = {
  write(writer, value) {
    kind.write(writer, value.kind);
    if (value.kind === 'ban') ban.write(writer, { ...value, untilMillis: Math.floor(value.untilMillis) });
    else if (value.kind === 'unban') unban.write(writer, value);
    else block.write(writer, value);
  },
  read(reader) {
    const named = kind.read(reader);
    if (named === 'ban') return { kind: named, ...ban.read(reader) };
    if (named === 'unban') return { kind: named, ...unban.read(reader) };
    return { kind: named, ...block.read(reader) };
  },
};

type Numbered = { readonly instance: string; readonly number: number; readonly news: News };
const numbered = struct<Numbered>({ instance: text(64), number: count, news });

export class NewsWriter {
  readonly #instance: string;
  readonly #seal: Seal;
  #number = 0;

  constructor(instance: string, seal: Seal) {
    this.#instance = instance;
    this.#seal = seal;
  }

  write(value: News): Buffer {
    this.#number++;
    return this.#seal.seal(
      'news',
      NAME,
      encode(numbered, { instance: this.#instance, number: this.#number, news: value }),
    );
  }
}

export class NewsReader {
  readonly #seal: Seal;
  readonly #unread: UnreadValues;
  readonly #heard = new Map<string, number>();

  constructor(dependencies: { seal: Seal; unread: UnreadValues }) {
    this.#seal = dependencies.seal;
    this.#unread = dependencies.unread;
  }

  read(message: Bytes): News | undefined {
    const opened = this.#seal.open('news', NAME, message);
    if (opened.kind !== 'payload') {
      this.#unread.note('news', opened);
      return undefined;
    }
    try {
      const { instance, number, news: value } = decode(numbered, opened.payload);
      if (number <= (this.#heard.get(instance) ?? 0)) return undefined;
      this.#heard.delete(instance);
      this.#heard.set(instance, number);
      for (const oldest of this.#heard.keys()) {
        if (this.#heard.size <= MAX_INSTANCES) break;
        this.#heard.delete(oldest);
      }
      return value;
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#unread.note('news', { kind: 'damaged' });
      return undefined;
    }
  }
}
