/** Bodies and spare jobs (docs/protocol/stratum.md, S53 and S57): a body is good for one block, and a large miner has a second one. */
import { expect, test } from 'vitest';
import { Bodies, type BodyOwner } from '../../bridge/bodies.ts';
import { readExtranonce } from '../../bridge/extranonce.ts';
import { type Bytes, utf8 } from '../../protocol/bytes.ts';
import { blockId, NONCE_OFFSET } from '../../protocol/header.ts';
import { headerPays } from '../../protocol/reward.ts';
import type { Job } from '../../protocol/stratum/messages.ts';
import { decodeServerMessage, type ServerMessage } from '../../protocol/stratum/v1-answer.ts';
import { type Call, encodeRequest, type Method, type RequestId } from '../../protocol/stratum/v1-request.ts';
import { EASY } from './bed.ts';
import { type DeskBed, deskBed, RecordingPeer } from './desk-bed.ts';
import { accountOf, addressOf } from './stratum-client.ts';

const owner: BodyOwner = { tag: '', owner: new Uint8Array(13).fill(1), payout: accountOf(1) };

test('a body has one block; the spare is one more, and what was current becomes the next spare', () => {
  const bodies = new Bodies(owner, 0, null);
  bodies.spend(owner, 0);
  expect([bodies.isSpent(0), bodies.isSpent(1), bodies.current.generation]).toEqual([true, false, 1]);
  expect(bodies.keepSpare(owner)?.generation).toBe(1);
  expect(bodies.keepSpare(owner)?.generation).toBe(1);
  expect(bodies.current.generation).toBe(2);
  bodies.spend(owner, 2);
  expect([bodies.current.generation, bodies.spare?.generation]).toEqual([3, 1]);
  expect([0, 1, 2, 3].map((generation) => bodies.isSpent(generation))).toEqual([true, false, true, false]);
  bodies.spend(owner, 1);
  expect([bodies.current.generation, bodies.spare?.generation]).toEqual([4, 3]);
  expect(bodies.isSpent(1)).toBe(true);
  for (const generation of [0, 3, 4]) {
    const { extranonce, rewardRoot } = bodies.find(owner, generation);
    expect(readExtranonce(extranonce)?.generation).toBe(generation);
    expect(rewardRoot.length).toBe(48);
  }
});

test('the last generation has its block too, and none comes after it', () => {
  const bodies = new Bodies(owner, 0xffff, null);
  expect(bodies.keepSpare(owner)).toBeNull();
  expect(bodies.isSpent(0xffff)).toBe(false);
  bodies.spend(owner, 0xffff);
  expect([bodies.isOver, bodies.isSpent(0xffff)]).toEqual([true, true]);
  const withSpare = new Bodies(owner, 0xffff, 5);
  withSpare.spend(owner, 5);
  expect([withSpare.isOver, withSpare.isSpent(5), withSpare.isSpent(0xffff)]).toEqual([false, true, false]);
});

/** A v1 miner on a desk without sockets; a nonce that begins with 1 is a block, every other one a share. */
const hash = (header: Bytes): Bytes =>
  new Uint8Array(32).fill(header[NONCE_OFFSET] === 1 ? 0 : 0x05, 0, 1).fill(0xff, 1);

class DeskMiner {
  readonly bed: DeskBed;
  readonly peer = new RecordingPeer();
  readonly #conversation;
  readonly #methods = new Map<RequestId, Method>();
  #id = 0;
  #nonce = 0;
  #prefix: Bytes = new Uint8Array(2);

  constructor(bed: DeskBed) {
    this.bed = bed;
    this.#conversation = bed.open('v1', this.peer);
  }

  async ask(call: Call): Promise<ServerMessage> {
    const id = ++this.#id;
    this.#methods.set(id, call.method);
    this.#conversation.receive(utf8(`${encodeRequest(id, call)}\n`));
    await this.bed.settle();
    const answer = this.said.find((message) => message.kind !== 'notification' && message.id === id);
    if (answer === undefined) throw new Error('no answer');
    return answer;
  }

  get said(): ServerMessage[] {
    const text = Buffer.concat(this.peer.written).toString();
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => decodeServerMessage(utf8(line), (id) => this.#methods.get(id)));
  }

  get jobs(): Job[] {
    return this.said.flatMap((message) =>
      message.kind === 'notification' && message.method === 'mining.notify' ? [message.params] : [],
    );
  }

  async login(session: string | null): Promise<string> {
    const subscribed = await this.ask({ method: 'mining.subscribe', params: { agent: 'x/1', tag: '', session } });
    await this.ask({ method: 'mining.authorize', params: { username: `${addressOf(1)}.w`, password: 'd=32' } });
    if (subscribed.kind !== 'result' || subscribed.method !== 'mining.subscribe') throw new Error('not subscribed');
    this.#prefix = subscribed.result.noncePrefix;
    return subscribed.result.session;
  }

  /** The block id of the answer, null for a mere share, or the code of a refusal. */
  async submit({ jobId }: Job, isBlock: boolean): Promise<Bytes | null | number> {
    const nonce = new Uint8Array(8);
    new DataView(nonce.buffer).setUint32(1, ++this.#nonce);
    nonce[0] = isBlock ? 1 : 2;
    nonce.set(this.#prefix, 6);
    const answer = await this.ask({ method: 'mining.submit', params: { jobId, nonce } });
    if (answer.kind === 'error') return answer.error.code;
    if (answer.kind !== 'result' || answer.method !== 'mining.submit') throw new Error('no verdict');
    return answer.result.blockId;
  }

  end(): void {
    this.bed.desk.gone(this.#conversation, 'test');
  }
}

const generationOf = ({ extranonce }: Job): number | undefined => readExtranonce(extranonce)?.generation;

test('a large miner holds a spare job: a block on each, never two on one body; a resumed session keeps it', async () => {
  const bed = await deskBed({ limits: EASY, hash });
  const small = new DeskMiner(bed);
  const large = new DeskMiner(bed);
  await small.login(null);
  const session = await large.login(null);
  // 64 hashes find a block: at 32 a second one comes every 2 s.
  for (let second = 0; second < 120; second++) {
    bed.clock += 1_000;
    await large.submit(large.jobs.at(-1)!, false);
    bed.desk.tick();
  }
  await bed.publish(1_001);
  await bed.settle();
  expect(small.jobs.length).toBeGreaterThan(1);
  expect(new Set(small.jobs.map(generationOf))).toEqual(new Set([0]));
  const [spare, current] = large.jobs.slice(-2) as [Job, Job];
  expect([generationOf(spare), generationOf(current)]).toEqual([0, 1]);
  expect([spare.clean, current.clean]).toEqual([false, false]);
  expect(spare.jobId).toBeLessThan(current.jobId);
  for (const job of [spare, current]) expect(headerPays(job.header, accountOf(1), job.extranonce)).toBe(true);
  expect(spare.header.slice(0, 176)).toEqual(current.header.slice(0, 176));

  expect(await large.submit(current, true)).not.toBeNull();
  const third = large.jobs.at(-1)!;
  expect(generationOf(third)).toBe(2);
  expect(await large.submit(current, true)).toBeNull();
  // The miner moved to the spare before the third job came, and found one there too.
  expect(await large.submit(spare, true)).not.toBeNull();
  expect(await large.submit(spare, true)).toBeNull();
  expect(generationOf(large.jobs.at(-1)!)).toBe(3);
  expect(bed.blocks.length).toBe(2);

  large.end();
  const again = new DeskMiner(bed);
  expect(await again.login(session)).toBe(session);
  expect(await again.submit(third, true)).not.toBeNull();
  expect(await again.submit(spare, true)).toBeNull();
  expect(bed.blocks.length).toBe(3);
  expect(new Set(bed.blocks.map(({ extranonce }) => readExtranonce(extranonce)?.generation))).toEqual(
    new Set([0, 1, 2]),
  );
  for (const block of bed.blocks) expect(block.blockId).toEqual(blockId(block.header));
});
