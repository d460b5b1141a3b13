/**
 * The share streams of many front ends, as their senders write them to Redis: sealed messages, each with what a front end
 * gathered within its linger. The shares are made up; the messages are real.
 */
import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { messageName, packEntries } from '../../../pool/feed/stream-message.ts';
import { encodeRecord } from '../../../pool/journal/journal-record.ts';
import { redisKeys } from '../../../pool/shared/redis.ts';
import { Seal } from '../../../pool/shared/seal.ts';
import { SHARE_IDENTITY_BYTES } from '../../../protocol/books/share-identity.ts';
import { accountOf } from '../../bridge/stratum-client.ts';
import { answerAsked } from '../stratum/asked.ts';

const [url = '', frontEnds = '50', lingerMillis = '20', accounts = '10000', reign = ''] = process.argv.slice(2);
/** At ten thousand shares a second and a cut every 2.5 s. */
const SHARES_OF_AN_ANCHOR = 25_000;
const FIRST_HEIGHT = 1_000;

const redis = new Redis(url);
const keys = redisKeys('scale');
const seal = new Seal(new Uint8Array(32), 'scale');
const owners = Array.from({ length: Number(accounts) }, (_, i) => accountOf(i));
const boots = Array.from({ length: Number(frontEnds) }, (_, i) => ({
  bootId: i.toString(16).padStart(16, '0'),
  next: 0,
  /** Parts of a share that it is behind. */
  owed: 0,
}));
let sent = 0;
let messages = 0;
let failed = 0;
let perSecond = 0;
let at = performance.now();

function send(boot: (typeof boots)[number], count: number): void {
  const bytes = randomBytes(count * SHARE_IDENTITY_BYTES);
  const atMillis = Date.now();
  const entries = Array.from({ length: count }, (_, i) => {
    const number = sent + i;
    const identity = {
      anchorHeight: FIRST_HEIGHT + Math.floor(number / SHARES_OF_AN_ANCHOR),
      bytes: Uint8Array.from(bytes.subarray(i * SHARE_IDENTITY_BYTES, (i + 1) * SHARE_IDENTITY_BYTES)),
    };
    const account = owners[number % owners.length] as Uint8Array<ArrayBuffer>;
    const record = { kind: 'share', service: 'pplns', account, worker: 'w', work: 1_000n, atMillis, identity } as const;
    return { bootId: boot.bootId, sequence: boot.next + i, record: encodeRecord(record) };
  });
  const after = boot.next - 1;
  const sealed = seal.seal('entries', messageName({ bootId: boot.bootId, after, reign }), packEntries(entries));
  boot.next += count;
  sent += count;
  messages++;
  redis
    .xadd(keys.feed, '*', 'boot', boot.bootId, 'after', String(after), 'reign', reign, 'entries', Buffer.from(sealed))
    .catch(() => failed++);
}

setInterval(() => {
  const now = performance.now();
  const share = ((now - at) / 1_000) * (perSecond / boots.length);
  at = now;
  for (const boot of boots) {
    boot.owed += share;
    const count = Math.min(1_000, Math.floor(boot.owed));
    boot.owed -= count;
    if (count > 0) send(boot, count);
  }
}, Number(lingerMillis));

answerAsked({
  rate: async (value: number) => {
    perSecond = value;
    for (const boot of boots) boot.owed = 0;
  },
  sent: async () => ({ sent, messages, failed }),
  cpu: async () => (process.cpuUsage().user + process.cpuUsage().system) / 1_000,
});
