/** The session machine without sockets: a recorded session replays byte for byte; random and mutated input never breaks it. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { type Bytes, concat, toHex, utf8 } from '../../protocol/bytes.ts';
import { decodeServerMessage } from '../../protocol/stratum/v1-answer.ts';
import { type Call, encodeRequest } from '../../protocol/stratum/v1-request.ts';
import { encodeClientFrame } from '../../protocol/stratum/v2.ts';
import { count, seed } from '../level.ts';
import { randomOf } from '../random.ts';
import { lasts } from '../watch/limits.ts';
import { EASY } from './bed.ts';
import { deskBed, RecordingPeer } from './desk-bed.ts';
import { addressOf, mine } from './stratum-client.ts';

type Step = { readonly atMillis: number; readonly input: Bytes } | { readonly atMillis: number; readonly cut: number };

const line = (id: number, call: Call): Bytes => utf8(`${encodeRequest(id, call)}\n`);

async function play(steps: readonly Step[], form: 'v1' | 'v2'): Promise<string[]> {
  const bed = await deskBed();
  const start = bed.clock;
  const peer = new RecordingPeer();
  const conversation = bed.open(form, peer);
  for (const step of steps) {
    bed.clock = start + step.atMillis;
    if ('cut' in step) await bed.publish(step.cut);
    else conversation.receive(step.input);
    await bed.settle();
    bed.desk.tick();
    await bed.settle();
  }
  return peer.written.map(toHex);
}

test('a recorded session replays byte for byte', async () => {
  const bed = await deskBed();
  const peer = new RecordingPeer();
  const conversation = bed.open('v1', peer);
  const start = bed.clock;
  const steps: Step[] = [];
  let clock = 0;
  const feed = async (input: Bytes): Promise<void> => {
    clock += 137;
    bed.clock = start + clock;
    steps.push({ atMillis: clock, input });
    conversation.receive(input);
    await bed.settle();
    bed.desk.tick();
    await bed.settle();
  };
  await feed(
    concat(
      line(1, { method: 'mining.subscribe', params: { agent: 'x/1', tag: 'tag', session: null } }),
      utf8('{"jsonrpc"'),
    ),
  );
  await feed(utf8(':"2.0","id":2,"method":"mining.ping"}\n'));
  await feed(line(3, { method: 'mining.authorize', params: { username: `${addressOf(1)}.w`, password: 'd=4' } }));
  // The answer and the job after it are one write.
  const [, text = ''] = Buffer.from(peer.written.at(-1)!).toString().trim().split('\n');
  const notify = decodeServerMessage(utf8(text), () => undefined);
  if (notify.kind !== 'notification' || notify.method !== 'mining.notify') throw new Error('no job');
  const job = notify.params;
  const prefix = Uint8Array.of(0, 0);
  let from = 0n;
  for (let id = 4; id < 40; id++) {
    const hit = mine(job, prefix, from);
    from = hit.next;
    await feed(line(id, { method: 'mining.submit', params: { jobId: job.jobId, nonce: hit.nonce } }));
  }
  await feed(line(40, { method: 'mining.submit', params: { jobId: job.jobId + 9_999, nonce: new Uint8Array(8) } }));
  await feed(utf8('nonsense\n'));
  await feed(line(41, { method: 'mining.stats' }));
  expect(bed.shares.length).toBe(36);
  expect(bed.blocks.length).toBe(1);
  const said = peer.written.map(toHex);
  expect(await play(steps, 'v1')).toEqual(said);
  expect(await play(steps, 'v1')).toEqual(said);
});

const V1_SEEDS: Bytes[] = [
  line(1, { method: 'mining.subscribe', params: { agent: 'x/1', tag: '', session: null } }),
  line(2, { method: 'mining.subscribe', params: { agent: 'x/1', tag: 't', session: '03'.repeat(16) } }),
  line(3, { method: 'mining.authorize', params: { username: `${addressOf(1)}.w`, password: 'd=4' } }),
  line(4, { method: 'mining.authorize', params: { username: addressOf(2), password: 'x,min=9' } }),
  line(5, { method: 'mining.submit', params: { jobId: 64, nonce: new Uint8Array(8) } }),
  line(6, { method: 'mining.submit', params: { jobId: 65, nonce: Uint8Array.of(1, 2, 3, 4, 5, 6, 0, 0) } }),
  line(7, { method: 'mining.stats' }),
  line(8, { method: 'mining.ping' }),
];
const V2_SEEDS: Bytes[] = [
  encodeClientFrame({ type: 'subscribe', subscribe: { agent: 'x/2', tag: '', session: null } }),
  encodeClientFrame({ type: 'authorize', authorize: { username: `${addressOf(1)}.w`, password: '' } }),
  encodeClientFrame({ type: 'submit', sequence: 1, submit: { jobId: 64, nonce: new Uint8Array(8) } }),
  encodeClientFrame({
    type: 'submit',
    sequence: 2,
    submit: { jobId: 64, nonce: Uint8Array.of(1, 0, 0, 0, 0, 0, 0, 0) },
  }),
  encodeClientFrame({ type: 'ping', value: 5n }),
  encodeClientFrame({ type: 'farm', rigs: 3 }),
  encodeClientFrame({ type: 'rig', rig: { index: 1, worker: 'a' } }),
  encodeClientFrame({ type: 'rig', rig: { index: 1, worker: '' } }),
  // The second job on the first template: the one after the login came before it.
  ...[1, 2].map((sequence) =>
    encodeClientFrame({
      type: 'farmSubmit',
      sequence,
      submit: { jobId: 65, generation: sequence, rig: 1, nonce: new Uint8Array(8) },
    }),
  ),
];

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Bytes that are still reachable. */
async function heldBytes(): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, 20));
  collect();
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** The collector leaves some 0.2 MB of noise; conversations that stayed would be 3 MB at the full level. */
const GROWTH_BYTES = (inputs: number) => 1_000_000 + 8 * inputs;

test(
  'random and mutated input: no crash, no growth',
  lasts(120, 'it sends hundreds of thousands of lines'),
  async () => {
    const inputs = count({ quick: 5_000, full: 40_000, deep: 1_000_000 });
    const random = randomOf(seed);
    // A hash that meets every target of a share now and then, and never that of a block, is all the machine can tell.
    const limits = { ...EASY, bans: { ...EASY.bans, limit: 400 } };
    const bed = await deskBed({ limits, hash: (header) => new Uint8Array(32).fill(header[304] === 1 ? 255 : 8) });
    const mutate = (bytes: Bytes): Bytes => {
      const copy = Uint8Array.from(bytes);
      for (let i = random(4); i > 0; i--) copy[random(copy.length)] = random(256);
      const kind = random(8);
      if (kind === 0) return copy.subarray(0, random(copy.length));
      if (kind === 1) return concat(copy.subarray(0, random(copy.length)), copy);
      if (kind === 2) return Uint8Array.from({ length: random(300) }, () => random(256));
      return copy;
    };
    let conversation = bed.open('v1', new RecordingPeer(false, false));
    let seeds = V1_SEEDS;
    let ended = 0;
    let early = 0;
    for (let i = 0; i < inputs; i++) {
      if (conversation.isEnding || random(60) === 0) {
        bed.desk.gone(conversation, 'fuzz');
        ended++;
        const form = random(2) === 0 ? 'v1' : 'v2';
        seeds = form === 'v1' ? V1_SEEDS : V2_SEEDS;
        conversation = bed.open(form, new RecordingPeer(random(4) === 0, false));
      }
      const next = seeds[random(10) < 6 ? random(seeds.length) : Math.min(i % 3, seeds.length - 1)] as Bytes;
      const input = random(3) === 0 ? mutate(next) : next;
      if (conversation.peer.framed) conversation.receiveMessage(input);
      else conversation.receive(input);
      if (random(20) === 0) {
        bed.clock += random(3) === 0 ? -random(5_000) : random(30_000);
        await bed.settle();
        bed.desk.tick();
      }
      if (random(500) === 0) await bed.publish(1_000 + Math.floor(i / 500));
      bed.shares.length = 0;
      bed.faults.length = 0;
      if (bed.shelf.size > 100) bed.shelf.clear();
      if (i === Math.floor(inputs / 4)) early = await heldBytes();
    }
    bed.desk.gone(conversation, 'fuzz');
    await bed.settle();
    bed.desk.tick();
    const figures = bed.desk.figures();
    expect(figures).toMatchObject({ connections: 0, mining: 0, verifying: 0 });
    expect(ended).toBeGreaterThan(inputs / 200);
    bed.shelf.clear();
    const growth = (await heldBytes()) - early;
    console.log(`${inputs} inputs on ${ended} connections: ${growth} bytes more than after a quarter of them`);
    expect(growth).toBeLessThan(GROWTH_BYTES(inputs));
  },
);
