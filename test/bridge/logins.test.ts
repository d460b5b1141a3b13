/** What a login costs the main thread: nothing where the sink is not asked, and no member before its first share. */
import { expect, test } from 'vitest';
import { Counters } from '../../bridge/shares/counters.ts';
import type { JudgedShare, Member } from '../../bridge/threads/hub.ts';
import { IntroducedMembers } from '../../bridge/threads/introduced-members.ts';
import type { ServerMessage } from '../../protocol/stratum/v1-answer.ts';
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
