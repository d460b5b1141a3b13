/** Parts of a snapshot from several peers: in order, each proven before it is passed on, bounded ahead; who sends a false one pays, a slow one is passed, and nobody is waited for without end. */
import { expect, test } from 'vitest';
import { AskError, faultOf } from '../../node/network/peers/peer-fault.ts';
import {
  LostSnapshot,
  PATIENCE,
  PartFetch,
  type PartFetchDependencies,
  type Patience,
} from '../../node/network/snapshots/part-fetch.ts';
import { CHUNK_BYTES, encodeChunk, NO_CHUNK } from '../../node/network/snapshots/snapshot-messages.ts';
import { decodeSyncQuestion } from '../../node/network/sync/sync-messages.ts';
import { PROTOCOLS } from '../../node/network/thread/host-types.ts';
import { falsePart } from '../../node/snapshot/snapshot-error.ts';
import type { PartRule } from '../../node/snapshot/snapshot-parts.ts';

const HEIGHT = 191;
const FIRST = 6;
const MEBIBYTE = 1_024 * 1_024;

type Chunks = (part: number, from: number) => Promise<Uint8Array> | Uint8Array;

/** Part n is so many bytes of n. */
const bytesOf = (part: number, length = 100): Uint8Array => new Uint8Array(length).fill(part);

const chunkOf = (whole: Uint8Array, from: number): Uint8Array =>
  encodeChunk({ length: whole.length, bytes: whole.subarray(from, from + CHUNK_BYTES) });

function rulesOf(count: number, length = 100): PartRule<number>[] {
  return Array.from({ length: count }, (_, i) => ({
    maxBytes: length,
    read: (bytes) => {
      const isOther = (at: number) => bytes[at] !== FIRST + i;
      if (bytes.length !== length || [0, length >> 1, length - 1].some(isOther)) throw falsePart('another part');
      return FIRST + i;
    },
  }));
}

class Peers {
  readonly asked: string[] = [];
  readonly faults: string[] = [];
  readonly held: Set<string>;
  now = 0;
  readonly fetch: PartFetch;

  constructor(peers: Record<string, Chunks>, patience: Patience = PATIENCE.fetch) {
    this.held = new Set(Object.keys(peers));
    const dependencies: PartFetchDependencies = {
      holders: () => [...this.held],
      ask: async (peer, bytes) => {
        const question = decodeSyncQuestion(bytes);
        if (question.type !== 'part' || question.height !== HEIGHT) throw new Error('another question');
        this.asked.push(`${peer} ${question.part} ${question.from}`);
        return await (peers[peer] as Chunks)(question.part, question.from);
      },
      blame: (error, peer) => void this.faults.push(`${peer} ${faultOf(error)}`),
      drop: (peer) => void this.held.delete(peer),
      steady: () => this.now,
    };
    this.fetch = new PartFetch(HEIGHT, patience, dependencies);
  }

  async taken(rules: Iterable<PartRule<number>>): Promise<number[]> {
    const found: number[] = [];
    await this.fetch.run(FIRST, rules, async (value) => void found.push(value));
    return found;
  }
}

const honest: Chunks = (part, from) => chunkOf(bytesOf(part), from);
const never = () => new Promise<Uint8Array>(() => undefined);

test('parts of two peers come in order, long ones in several answers', async () => {
  const peers = new Peers({ a: honest, b: honest });
  expect(await peers.taken(rulesOf(20))).toEqual(Array.from({ length: 20 }, (_, i) => FIRST + i));
  expect(new Set(peers.asked.map((line) => line[0]))).toEqual(new Set(['a', 'b']));
  expect(peers.asked.length).toBe(20);
  const length = 2 * CHUNK_BYTES + 1;
  const long = new Peers({ a: (part, from) => chunkOf(bytesOf(part, length), from) });
  expect(await long.taken(rulesOf(1, length))).toEqual([FIRST]);
  expect(long.asked).toEqual([0, CHUNK_BYTES, 2 * CHUNK_BYTES].map((from) => `a ${FIRST} ${from}`));
  expect(await long.taken([])).toEqual([]);
});

test('who sends a false, too long or broken part pays for it and is not asked again; another one is', async () => {
  const lies: [string, Chunks, string][] = [
    ['another', (_, from) => chunkOf(bytesOf(0), from), 'false_proof'],
    ['longer', (part, from) => chunkOf(bytesOf(part, 101), from), 'false_proof'],
    ['a gibibyte', (part) => encodeChunk({ length: 2 ** 30, bytes: bytesOf(part) }), 'false_proof'],
    ['less than it says', (part) => encodeChunk({ length: 100, bytes: bytesOf(part, 99) }), 'malformed'],
    ['nothing of it', () => encodeChunk({ length: 100, bytes: new Uint8Array(0) }), 'malformed'],
    ['no message', () => new Uint8Array(3), 'malformed'],
  ];
  for (const [what, lie, fault] of lies) {
    const peers = new Peers({ liar: lie, honest });
    expect(await peers.taken(rulesOf(5)), what).toEqual([6, 7, 8, 9, 10]);
    expect(new Set(peers.faults), what).toEqual(new Set([`liar ${fault}`]));
    // What is no message at all is no word about the snapshot: it costs points and nothing else.
    if (what !== 'no message') expect([...peers.held], what).toEqual(['honest']);
    // Two at once at most, before the first is seen.
    expect(peers.asked.filter((line) => line.startsWith('liar')).length, what).toBeLessThanOrEqual(2);
  }
  const changing = new Peers({
    liar: (part, from) => encodeChunk({ length: 3 * CHUNK_BYTES - from, bytes: bytesOf(part, CHUNK_BYTES) }),
    honest: (part, from) => chunkOf(bytesOf(part, 3 * CHUNK_BYTES), from),
  });
  expect(await changing.taken(rulesOf(1, 3 * CHUNK_BYTES))).toEqual([FIRST]);
  expect(changing.faults).toEqual(['liar malformed']);
});

test('one that does not have the part pays nothing; one that takes its time is passed', async () => {
  const without = new Peers({ without: () => encodeChunk(NO_CHUNK), honest });
  expect(await without.taken(rulesOf(5))).toEqual([6, 7, 8, 9, 10]);
  expect(new Set(without.faults)).toEqual(new Set(['without undefined']));
  expect([...without.held]).toEqual(['honest']);
  const slow = new Peers({ slow: never, honest });
  const taking = slow.taken(rulesOf(5));
  const clock = setInterval(() => {
    slow.now += 1_000;
    slow.fetch.wake();
  }, 5);
  expect(await taking).toEqual([6, 7, 8, 9, 10]);
  clearInterval(clock);
  expect(slow.asked.filter((line) => line.startsWith('slow')).length).toBe(2);
});

test('forty that say they have it and are silent do not keep a fetch from one that was busy once', async () => {
  let busyOnce = true;
  const waiting: { readonly until: number; readonly end: () => void }[] = [];
  const silent = () =>
    new Promise<Uint8Array>((_, reject) => {
      const end = () => reject(new AskError('unanswered', 'it did not answer'));
      waiting.push({ until: peers.now + PROTOCOLS.sync.millis, end });
    });
  const others = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`silent${i}`, silent]));
  const peers = new Peers({
    ...others,
    honest: (part, from) => {
      if (!busyOnce) return honest(part, from);
      busyOnce = false;
      throw new AskError('busy', 'the peer is busy');
    },
  });
  const taking = peers.taken(rulesOf(20));
  const clock = setInterval(() => {
    peers.now += 500;
    for (const { until, end } of waiting) if (until <= peers.now) end();
    peers.fetch.wake();
  }, 2);
  try {
    expect((await taking).length).toBe(20);
  } finally {
    clearInterval(clock);
  }
});

test('what is fetched ahead is bounded: a part that does not come holds up the others', async () => {
  const late = Promise.withResolvers<void>();
  const length = 8 * 1_024 * 1_024;
  const peers = new Peers({
    a: async (part) => {
      if (part === FIRST) await late.promise;
      return encodeChunk({ length, bytes: bytesOf(part, CHUNK_BYTES) });
    },
  });
  const begun: number[] = [];
  const rules = function* () {
    for (const [i, rule] of rulesOf(12, length).entries()) {
      begun.push(i);
      yield rule;
    }
  };
  const taking = peers.taken(rules());
  const parts = () => new Set(peers.asked.map((line) => line.split(' ')[1]));
  while (parts().size < 4) await new Promise((resolve) => setTimeout(resolve, 5));
  // 32 MiB: the one that is missing and three more. The next rule is only looked at.
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect([parts().size, begun.length]).toEqual([4, 5]);
  late.resolve();
  expect((await taking).length).toBe(12);
});

test('of a long part little is held that nobody finishes, and one who sends it is not given up for those', async () => {
  const length = 60 * MEBIBYTE;
  const chunk = encodeChunk({ length, bytes: new Uint8Array(CHUNK_BYTES).fill(FIRST) });
  const begins: Chunks = async (_, from) => (from >= length - CHUNK_BYTES ? await never() : chunk);
  const asked = new Set<string>();
  const names = Array.from({ length: 20 }, (_, i) => `begins${i}`);
  let most = 0;
  const pass = (millis: number) => {
    peers.now += millis;
    peers.fetch.wake();
    most = Math.max(most, peers.fetch.heldBytes);
    for (const line of peers.asked) asked.add(line.split(' ')[0] as string);
  };
  // From then on time goes by its answers, however busy this machine is.
  const honest: Chunks = async () => {
    clearInterval(clock);
    await new Promise((resolve) => setTimeout(resolve, 1));
    pass(250);
    return chunk;
  };
  const peers = new Peers({ ...Object.fromEntries(names.map((name) => [name, begins])), honest });
  const taking = peers.taken(rulesOf(1, length));
  const clock = setInterval(() => pass(1_000), 20);
  try {
    expect(await taking).toEqual([FIRST]);
  } finally {
    clearInterval(clock);
  }
  expect(asked.size).toBe(21);
  expect(most).toBeLessThanOrEqual(96 * MEBIBYTE);
});

test('of a snapshot that was given up nothing is held until its peers have answered', async () => {
  const length = 60 * CHUNK_BYTES;
  const chunk = encodeChunk({ length, bytes: new Uint8Array(CHUNK_BYTES).fill(FIRST) });
  const peers = new Peers({ begins: async (_, from) => (from >= 4 * CHUNK_BYTES ? await never() : chunk) });
  const ended = expect(peers.taken(rulesOf(1, length))).rejects.toThrow('another one');
  while (peers.fetch.heldBytes < 4 * CHUNK_BYTES) await new Promise((resolve) => setTimeout(resolve, 1));
  peers.fetch.close(new Error('another one'));
  await ended;
  expect(peers.fetch.heldBytes).toBe(0);
});

const { provenMillis } = PATIENCE.fetch;
const busy: Chunks = () => {
  throw new AskError('busy', 'the peer is busy');
};

test('a peer that is busy at every second question brings a long part, and is asked for each of its bytes once', async () => {
  const length = 4 * CHUNK_BYTES;
  const given: number[] = [];
  let isBusy = true;
  const peers = new Peers({
    often: (part, from) => {
      setImmediate(() => {
        peers.now += 3_000;
        peers.fetch.wake();
      });
      isBusy = !isBusy;
      if (isBusy) return busy(part, from);
      given.push(from);
      return chunkOf(bytesOf(part, length), from);
    },
  });
  expect(await peers.taken(rulesOf(1, length))).toEqual([FIRST]);
  expect(given).toEqual([0, 1, 2, 3].map((i) => i * CHUNK_BYTES));
  expect(peers.fetch.heldBytes).toBe(0);
  expect(peers.faults.filter((line) => !line.endsWith('undefined'))).toEqual([]);
});

test('who has it and never sends it, or now and then a part of it, is not waited for without end', async () => {
  const peers = new Peers({ busy });
  const lost = expect(peers.taken(rulesOf(1))).rejects.toBeInstanceOf(LostSnapshot);
  while (peers.asked.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  peers.now = provenMillis;
  peers.fetch.wake();
  await lost;
  expect([...peers.held]).toEqual(['busy']);
  // A part in each minute: seven in that time are too few.
  const late: (() => void)[] = [];
  const dripping = new Peers({
    dripping: async (part, from) => {
      await new Promise<void>((resolve) => late.push(resolve));
      return chunkOf(bytesOf(part), from);
    },
  });
  const ended = expect(dripping.taken(rulesOf(100))).rejects.toBeInstanceOf(LostSnapshot);
  for (let i = 1; i <= 7; i++) {
    while (late.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    dripping.now = (i * provenMillis) / 8;
    late.shift()?.();
    while (dripping.asked.length < 2 + i) await new Promise((resolve) => setTimeout(resolve, 5));
  }
  dripping.now = provenMillis;
  dripping.fetch.wake();
  await ended;
});

test('of a snapshot that is only looked at nobody is waited for', async () => {
  await expect(new Peers({}, PATIENCE.look).taken(rulesOf(1))).rejects.toBeInstanceOf(LostSnapshot);
});

test('nobody has it for a minute, or the node stops: the fetch ends', async () => {
  const peers = new Peers({});
  const taking = peers.taken(rulesOf(1));
  const lost = expect(taking).rejects.toBeInstanceOf(LostSnapshot);
  peers.now = 60_001;
  peers.fetch.wake();
  await lost;
  const stopped = new Peers({ a: never });
  const ended = expect(stopped.taken(rulesOf(1))).rejects.toThrow('stopped');
  stopped.fetch.close(new Error('stopped'));
  await ended;
});
