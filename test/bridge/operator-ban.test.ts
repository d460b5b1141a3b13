/** A ban that the operator sets closes what it covers: an address, a network or a mining address, mining or not. */
import { expect, test } from 'vitest';
import { BanList } from '../../bridge/session/ban-score.ts';
import { operatorKey } from '../../bridge/session/operator-ban.ts';
import { formatAddress } from '../../protocol/address.ts';
import { EASY } from './bed.ts';
import { deskBed } from './desk-bed.ts';
import { DeskMiner } from './desk-miner.ts';
import { addressOf } from './stratum-client.ts';

const HOUR = 3_600_000;
const CODE_BANNED = 28;

async function loggedIn(bed: Awaited<ReturnType<typeof deskBed>>, ip: string, name: string) {
  const miner = new DeskMiner(bed, ip);
  await miner.ask({ method: 'mining.subscribe', params: { agent: 'x/1', tag: '', session: null } });
  miner.send({ method: 'mining.authorize', params: { username: name, password: '' } });
  await bed.settle();
  return miner;
}

test.each([
  ['its address', '203.0.113.5'],
  ['its network', '203.0.113.0/24'],
  ['its mining address', addressOf(1)],
])(
  'a ban of %s closes the connection that mines, refuses the next one, spares others, and ends',
  async (_name, written) => {
    const bed = await deskBed();
    await bed.publish(10);
    const miner = await loggedIn(bed, '203.0.113.5', `${addressOf(1)}.a`);
    const other = await loggedIn(bed, '198.51.100.7', `${addressOf(2)}.b`);
    expect(miner.jobs.length).toBeGreaterThan(0);
    const key = operatorKey(written) as string;
    bed.desk.ban(key, bed.clock + HOUR);
    await bed.settle();
    expect([miner.peer.isClosed, miner.codes]).toEqual([true, [CODE_BANNED]]);
    expect([other.peer.isClosed, other.codes]).toEqual([false, []]);
    expect(bed.logged.splice(0)).toEqual([expect.stringMatching(/closed by a ban of the operator .*"closed":1/)]);

    const again = await loggedIn(bed, '203.0.113.5', `${addressOf(1)}.a`).catch(() => undefined);
    expect(again?.jobs ?? []).toEqual([]);
    expect(again === undefined || (again.peer.isClosed && again.codes.includes(CODE_BANNED))).toBe(true);

    bed.desk.ban(key, 0);
    expect((await loggedIn(bed, '203.0.113.5', `${addressOf(1)}.a`)).jobs.length).toBeGreaterThan(0);
    bed.desk.ban(key, bed.clock + HOUR);
    bed.logged.splice(0);
    bed.clock += HOUR;
    expect((await loggedIn(bed, '203.0.113.5', `${addressOf(1)}.a`)).jobs.length).toBeGreaterThan(0);
  },
);

test('connections are found by what a ban of it would cover, or by a part of a name; the newest come first', async () => {
  const bed = await deskBed();
  await bed.publish(10);
  await loggedIn(bed, '203.0.113.5', `${addressOf(1)}.Attic`);
  await loggedIn(bed, '203.0.113.9', `${addressOf(2)}.cellar`);
  await loggedIn(bed, '198.51.100.7', `${addressOf(1)}.shed`);
  new DeskMiner(bed, '198.51.100.8');
  const found = (text: string) => bed.desk.connections({ text, most: 9 }).rows.map(({ miner }) => miner?.worker);
  expect(found('')).toEqual([undefined, 'shed', 'cellar', 'Attic']);
  expect(found('203.0.113.0/24')).toEqual(['cellar', 'Attic']);
  expect(found('203.0.113.5')).toEqual(['Attic']);
  expect(found(addressOf(1))).toEqual(['shed', 'Attic']);
  expect(found('attic')).toEqual(['Attic']);
  expect(found('198.51')).toEqual([undefined, 'shed']);
  expect(bed.desk.connections({ text: '', most: 1 })).toMatchObject({ all: 4, found: 4, rows: [{ miner: null }] });
});

test('a ban by score spares the connections of its address that mine', async () => {
  const bed = await deskBed();
  await bed.publish(10);
  const miner = await loggedIn(bed, '203.0.113.5', `${addressOf(1)}.a`);
  const stranger = new DeskMiner(bed, '203.0.113.5');
  bed.desk.ban('203.0.113.5', bed.clock + HOUR);
  await bed.settle();
  expect([miner.peer.isClosed, stranger.peer.isClosed]).toEqual([false, true]);
});

test('keys of the operator are networks with their bits or mining addresses, are their own keys, and exempt nobody', () => {
  const mining = formatAddress(new Uint8Array(49), 'development');
  for (const [written, key] of [
    ['192.0.2.1', '192.0.2.1/32'],
    ['192.0.2.1/32', '192.0.2.1/32'],
    ['127.0.0.1', '127.0.0.1/32'],
    ['::1', '0:0:0:0:0:0:0:1/128'],
    ['10.0.0.0/8', '10.0.0.0/8'],
    ['::ffff:192.0.2.1', '192.0.2.1/32'],
    ['2001:db8::7', '2001:db8:0:0:0:0:0:7/64'],
    ['2001:db8::/32', '2001:db8:0:0:0:0:0:0/32'],
    [mining, mining],
  ] as const) {
    expect(operatorKey(written), written).toBe(key);
    expect(operatorKey(key), key).toBe(key);
    const list = new BanList(EASY.bans);
    list.ban(key, 1_000);
    expect(list.bans(0)).toEqual([{ key, untilMillis: 1_000 }]);
  }
  for (const written of [
    '',
    'x',
    '0.0.0.0/0',
    '10.0.0.0/7',
    '10.0.0.0/33',
    '::/0',
    '::/16',
    '::/64',
    '::2',
    '::ffff:0:0/80',
    '10.0.0.0/',
    'unknown',
    'proxied-::1',
  ])
    expect(operatorKey(written), written).toBeUndefined();
});

test('a ban of this machine as it is listed over IPv6 closes nobody else', async () => {
  const bed = await deskBed();
  await bed.publish(10);
  const miner = await loggedIn(bed, '203.0.113.5', `${addressOf(1)}.a`);
  const local = await loggedIn(bed, '::1', `${addressOf(2)}.b`);
  bed.desk.ban(operatorKey('::1') as string, bed.clock + HOUR);
  await bed.settle();
  expect([miner.peer.isClosed, local.peer.isClosed]).toEqual([false, true]);
  bed.logged.splice(0);
});
