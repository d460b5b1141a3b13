/**
 * Shares of many miners go to the main thread in one message, where each is named by the handle of its member. A miner that
 * takes its session away while the verifier is behind must not spoil the message for the others.
 */
import { expect, test } from 'vitest';
import { packShares, unpackShares } from '../../bridge/shares/share-batch.ts';
import type { Member } from '../../bridge/threads/hub.ts';
import { IntroducedMembers } from '../../bridge/threads/introduced-members.ts';
import { deskBed } from '../bridge/desk-bed.ts';
import { DeskMiner } from '../bridge/desk-miner.ts';

test('a session that is resumed before its share is verified costs nobody else a share', async () => {
  // As in bridge/threads/listener-threads.ts.
  const members = new Map<number, Member>();
  const memberOf = (handle: number): Member => {
    const member = members.get(handle);
    if (member === undefined) throw new Error(`no member has the handle ${handle}`);
    return member;
  };
  let counted = 0;
  let free = () => {};
  const held = new Promise<void>((resolve) => {
    free = resolve;
  });
  const introduced = new IntroducedMembers({
    introduce: (list) => {
      for (const member of list) members.set(member.handle, member);
    },
    left: (handles) => {
      for (const handle of handles) members.delete(handle);
    },
  });
  const bed = await deskBed({
    hash: () => new Uint8Array(32).fill(1),
    verifying: () => held,
    hub: {
      shares: async (shares) => {
        introduced.introduce(shares);
        counted += unpackShares(packShares(shares), memberOf).length;
      },
    },
    members: introduced,
  });
  const [honest, thief] = [new DeskMiner(bed), new DeskMiner(bed)];
  await honest.login();
  const session = await thief.login({ worker: 'thief' });
  const submit = (miner: DeskMiner) =>
    miner.send({
      method: 'mining.submit',
      params: { jobId: miner.jobs.at(-1)?.jobId as number, nonce: miner.nonce() },
    });
  const asked = submit(honest);
  submit(thief);
  await bed.settle();
  const again = new DeskMiner(bed);
  again.send({ method: 'mining.subscribe', params: { agent: 'x/1', tag: '', session } });
  await bed.settle();
  // The verifier takes longer than a resume waits for it.
  bed.clock += 5_000;
  await expect.poll(() => bed.settle().then(() => again.said.length)).toBe(1);
  free();
  await bed.settle();
  expect(honest.answerTo(asked)).toMatchObject({ kind: 'result' });
  expect(counted).toBe(2);
  bed.desk.tick();
  expect(members.size).toBe(1);
});
