/** What a login costs the main thread: nothing where the sink is not asked, and no member before its first share. */
import { expect, test } from 'vitest';
import { sendTogether } from '../../bridge/connection/v1-conversation.ts';
import { KnownAddresses } from '../../bridge/session/known-addresses.ts';
import { LocalSessionShelf } from '../../bridge/session/session-shelf.ts';
import { Counters } from '../../bridge/shares/counters.ts';
import type { WorkerEvent } from '../../bridge/shares/sink.ts';
import { EndedSessions } from '../../bridge/threads/ended-sessions.ts';
import type { JudgedShare, Member } from '../../bridge/threads/hub.ts';
import { IntroducedMembers } from '../../bridge/threads/introduced-members.ts';
import { packEvents, packMembers, unpackEvents, unpackMembers } from '../../bridge/threads/packed-members.ts';
import { formatAddress, parseAddress } from '../../protocol/address.ts';
import { headerDigest } from '../../protocol/books/share-identity.ts';
import { type Bytes, utf8 } from '../../protocol/bytes.ts';
import type { Job } from '../../protocol/stratum/messages.ts';
import type { ServerMessage } from '../../protocol/stratum/v1-answer.ts';
import { waiting } from '../pool/waiting-session.ts';
import { deskBed } from './desk-bed.ts';
import { DeskMiner } from './desk-miner.ts';
import { addressOf } from './stratum-client.ts';

const named = (message: ServerMessage): string => (message.kind === 'error' ? `${message.error.code}` : message.method);

test('where the sink is not asked, a login is answered with its job at once', async () => {
  expect('own' in new Counters()).toBe(false);
  const bed = await deskBed({ asksSink: false, hub: { own: () => Promise.reject(new Error('asked')) } });
  const miner = new DeskMiner(bed);
  miner.send({ method: 'mining.subscribe', params: { agent: 'x/1', tag: '', session: null } });
  const id = miner.send({ method: 'mining.authorize', params: { username: `${addressOf(1)}.w`, password: '' } });
  expect(miner.said.map(named)).toEqual(['mining.subscribe', 'mining.authorize', 'mining.notify']);
  expect(miner.answerTo(id)).toMatchObject({ result: { address: addressOf(1), worker: 'w' } });
  // The second and third in one write.
  expect(miner.peer.written).toHaveLength(2);
});

test('a second authorize is answered with the same address', async () => {
  const bed = await deskBed({ asksSink: false });
  const miner = new DeskMiner(bed);
  await miner.login();
  const call = { method: 'mining.authorize', params: { username: `${addressOf(1)}.w`, password: '' } } as const;
  expect(await miner.ask(call)).toMatchObject({ result: { address: addressOf(1), worker: 'w' } });
});

test('rigs of one address share its bytes, and every other address is read and judged for itself', async () => {
  const bed = await deskBed({ asksSink: false });
  const accounts = [];
  for (const worker of ['a', 'b']) {
    const miner = new DeskMiner(bed);
    await miner.login({ worker });
    accounts.push(miner.conversation.session.member?.account);
  }
  expect(accounts[0]).toEqual(parseAddress(addressOf(1)).payload);
  expect(accounts[1]).toBe(accounts[0]);
  const foreign = formatAddress(parseAddress(addressOf(1)).payload, 'testnet');
  const mistyped = `${addressOf(1).slice(0, -1)}${addressOf(1).endsWith('q') ? 'p' : 'q'}`;
  for (const address of [foreign, mistyped]) {
    const miner = new DeskMiner(bed);
    await miner.ask({ method: 'mining.subscribe', params: { agent: 'x/1', tag: '', session: null } });
    const call = { method: 'mining.authorize', params: { username: `${address}.w`, password: '' } } as const;
    expect(await miner.ask(call)).toMatchObject({ error: { code: 29 } });
  }
});

test.each([
  ['', 4n],
  ['min=64', 64n],
  ['min=64,rate=1000', 10_000n],
  ['min=100000,rate=1000', 100_000n],
  ['d=32,min=64,rate=1000', 32n],
])(
  'of a miner that asks for %j shares are worth what it asked: its lowest work is a floor, not a price',
  async (password, work) => {
    const bed = await deskBed({ asksSink: false });
    const miner = new DeskMiner(bed);
    await miner.login({ password });
    expect(miner.conversation.session.mining?.stats(null).shareWork).toBe(work);
  },
);

test('the addresses that are remembered are bounded', () => {
  const addresses = new KnownAddresses('development', 2);
  const first = addresses.read(addressOf(1));
  expect(addresses.read(addressOf(1))).toBe(first);
  for (const account of [2, 3]) addresses.read(addressOf(account));
  const again = addresses.read(addressOf(1));
  expect(again).not.toBe(first);
  expect(again).toEqual(first);
});

test('answers and job go out together, and what a peer still holds is not written over', () => {
  const held: Bytes[] = [];
  const peer = {
    framed: false,
    queued: 0,
    write: (data: Bytes | string) => void held.push(data as Bytes),
    pause: () => {},
    resume: () => {},
    end: () => {},
    destroy: () => {},
  };
  const job = utf8('job\n');
  const texts = [
    ['a'.repeat(100), false],
    ['\u20ac\u00e4', true],
    ['b'.repeat(5_000), false],
    ['c', false],
  ] as const;
  for (const [text, wide] of texts) {
    sendTogether(peer, text, wide, job);
    expect(Buffer.from(held.at(-1)!).toString()).toBe(`${text}job\n`);
  }
  expect(held[3]?.buffer).toBe(held[2]?.buffer);
  held.length = 0;
  peer.queued = 1;
  for (const [text, wide] of texts) sendTogether(peer, text, wide, job);
  expect(held.map((bytes) => Buffer.from(bytes).toString())).toEqual(texts.map(([text]) => `${text}job\n`));
});

const memberOf = (handle: number): Member => ({
  handle,
  owner: new Uint8Array(13).fill(handle),
  service: 'bridge',
  account: parseAddress(addressOf(1 + (handle % 3))).payload,
  worker: handle === 2 ? '' : `rig ${handle}`,
  tag: 't',
  agent: 'x/1 \u20ac',
});

test('members and events come out of a message as they went in', () => {
  const members = [1, 2, 2 ** 32 - 1].map(memberOf);
  expect(unpackMembers(structuredClone(packMembers(members)))).toEqual(members);
  const events = members.map(({ service, account, worker, agent, handle }, i): WorkerEvent => {
    const kind = i === 1 ? 'left' : 'joined';
    return { kind, service, account, worker, agent, connection: `1-${handle}`, atMillis: 1_800_000_000_000 + i };
  });
  expect(unpackEvents(structuredClone(packEvents(events)))).toEqual(events);
  expect(unpackEvents(packEvents([]))).toEqual([]);
});

test('sessions that end in one turn go to the main thread in one message, at once where one is asked for', () => {
  const sent: string[][] = [];
  const later: (() => void)[] = [];
  const ended = new EndedSessions(
    (run) => void later.push(run),
    (records) => void sent.push(records.map(({ id }) => id)),
  );
  for (const id of ['a', 'b']) ended.add(waiting(id));
  expect(sent).toEqual([]);
  later.shift()?.();
  ended.add(waiting('c'));
  ended.flush();
  expect(sent).toEqual([['a', 'b'], ['c']]);
  for (const run of later) run();
  expect(sent).toHaveLength(2);
});

test('a session comes from the shelf as it was put there, once', async () => {
  const shelf = new LocalSessionShelf({ resumeMillis: 1_000, resumeSessions: 4 }, () => 5);
  await shelf.put(waiting('a'));
  const { vardiff: _, jobs: __, ...bare } = waiting('b');
  await shelf.put({ ...bare, vardiff: null, jobs: null });
  expect(await shelf.take('a')).toEqual(waiting('a'));
  expect(await shelf.take('a')).toBeNull();
  expect(await shelf.take('b')).toEqual({ ...bare, vardiff: null, jobs: null });
});

test('every share names its own header: shares of one job the same, of another template another', async () => {
  // Worth more than the share work of 32 and less than a block of 64.
  const bed = await deskBed({ asksSink: false, hash: () => new Uint8Array(32).fill(5) });
  const miner = new DeskMiner(bed);
  await miner.login();
  const headers: Bytes[] = [];
  for (const shares of [2, 1]) {
    const job = miner.jobs.at(-1) as Job;
    for (let i = 0; i < shares; i++) {
      const nonce = miner.nonce();
      headers.push(job.header);
      await miner.ask({ method: 'mining.submit', params: { jobId: job.jobId, nonce } });
    }
    await bed.publish(1_001);
    await bed.settle();
  }
  expect(bed.shares.map((share) => share.headerDigest)).toEqual(headers.map((header) => headerDigest(header)));
  expect(headers[2]).not.toEqual(headers[0]);
});

test('a member is introduced before its first share, and once', () => {
  const told: string[] = [];
  const members = new IntroducedMembers({
    introduce: (list) => void told.push(`introduce ${list.map(({ handle }) => handle).join(' ')}`),
    left: (handles) => void told.push(`left ${handles.join(' ')}`),
  });
  const [one, two, three] = [1, 2, 3].map((handle) => ({ handle }) as Member) as [Member, Member, Member];
  const sharesOf = (...list: Member[]) => list.map((member) => ({ member }) as JudgedShare);
  members.introduce(sharesOf(one, two, one));
  members.introduce(sharesOf(two, one));
  members.left([three]);
  members.left([one, three]);
  members.introduce(sharesOf(two, three));
  expect(told).toEqual(['introduce 1 2', 'left 1', 'introduce 3']);
});
