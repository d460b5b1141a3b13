/**
 * Strangers at a validator's overlay, over real sockets: they fill every place they can get, by the hundred, with and without a hello, with false and with overheard identities. Members that prove
 * their key join all the same, and are heard.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import type { Peer } from '../../node/consensus/engine/effects.ts';
import { FrameReader, HELLO_BYTES } from '../../node/consensus/link/frames.ts';
import { admit, PLACES, type Place, placeFor } from '../../node/consensus/reach/inbound-places.ts';
import { Overlay, type OverlayDependencies } from '../../node/consensus/reach/overlay.ts';
import { OverlayIdentities } from '../../node/consensus/reach/overlay-identities.ts';
import { BARRED_MILLIS, CHECKS, NEWCOMERS, SENT_TO_STRANGERS } from '../../node/consensus/reach/overlay-limits.ts';
import type { OverlayAddress } from '../../node/consensus/reach/overlay-listeners.ts';
import { developmentKey, validatorName } from '../../node/genesis/development.ts';
import { signMessage } from '../../node/ml-dsa.ts';
import { type RememberedMembers, readMembers, rememberMembers } from '../../node/validator/remembered-members.ts';
import { type Bytes, concat } from '../../protocol/bytes.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import type { ListenAddress } from '../../runtime/command-line/command-line.ts';
import { RawEnd } from '../consensus/raw-end.ts';
import { silentLog } from '../node/bed.ts';
import { randomOf } from '../random.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';

const CHAIN = new Uint8Array(48).fill(7);
const members = [0, 1].map((member) => developmentKey(validatorName(member)));
const [member, otherMember] = members as [(typeof members)[number], (typeof members)[number]];
const random = randomOf(11);

const closing: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function open(
  neighbours: readonly ListenAddress[] = [],
  key?: typeof member,
  isFar = false,
  steady = steadyMillis,
  memory: Pick<OverlayDependencies, 'remembered' | 'remember'> = {},
) {
  const heard: { peer: Peer; bytes: Bytes }[] = [];
  const joined: Peer[] = [];
  const left: Peer[] = [];
  const transport = new Overlay(
    { chainId: CHAIN, binds: [{ host: '127.0.0.1', port: 0 }], neighbours },
    {
      log: silentLog,
      steady,
      ...memory,
      members: () => members,
      ...(key && {
        signer: { publicKey: key.publicKey, sign: async (message: Bytes) => signMessage(key.privateKey, message) },
      }),
      // Addresses of this machine stand for those of strangers.
      ...(isFar && { isNear: () => false }),
    },
  );
  const [address] = (await transport.listen()) as [OverlayAddress];
  transport.start({
    joined: (peer) => void joined.push(peer),
    left: (peer) => void left.push(peer),
    message: (peer, bytes) => void heard.push({ peer, bytes }),
  });
  closing.push(() => transport.close());
  return { transport, address, heard, joined, left };
}

type Stranger = {
  readonly end?: RawEnd;
  readonly first?: Bytes;
  readonly opening?: (theirs: Bytes) => Bytes | undefined;
  readonly localAddress?: string;
};

/** A program of its own; `opening` is what it says once it has the node's hello, which answers its own. */
function stranger(
  port: number,
  {
    end = new RawEnd(CHAIN),
    first = end.greeting,
    opening = (theirs) => end.open(theirs),
    localAddress = '127.0.0.1',
  }: Stranger = {},
): Socket {
  const socket = connect({ host: '127.0.0.1', port, localAddress });
  socket.write(first);
  socket.on('error', () => undefined);
  const reader = new FrameReader();
  reader.limit = 2 ** 31;
  let isFirst = true;
  socket.on('data', (piece) => {
    if (!isFirst) return;
    for (const frame of reader.push(piece)) {
      if (!isFirst) return;
      isFirst = false;
      const bytes = opening(frame);
      if (bytes !== undefined) socket.write(bytes);
    }
  });
  closing.push(() => void socket.destroy());
  return socket;
}

test('strangers that say hello fill every place for strangers: a member and a second one join, and are heard', async () => {
  const node = await open();
  for (let i = 0; i < PLACES.strangers; i++) stranger(node.address.port);
  await until(() => node.joined.length === PLACES.strangers);
  // One more is not let in, and none of those that are there has to go.
  const refused = stranger(node.address.port);
  await new Promise((resolve) => refused.once('close', resolve));
  expect(node.left).toEqual([]);
  for (const [i, key] of [member, otherMember].entries()) {
    const validator = await open([node.address], key);
    await until(() => validator.joined.length === 1);
    validator.transport.send(validator.joined[0] as Peer, Uint8Array.of(100, i));
    await until(() => node.heard.some(({ bytes }) => bytes[1] === i));
  }
  // What is missing is asked of them, not of strangers.
  expect(node.transport.known().length).toBe(2);
  expect(node.transport.peers().length).toBe(PLACES.strangers + 2);
});

test('half-open handshakes, more than there are places and again and again: a member joins', async () => {
  const node = await open();
  const wave = () => {
    for (let i = 0; i < PLACES.waiting + 16; i++) {
      const part = [new Uint8Array(0), new RawEnd(CHAIN).greeting, Uint8Array.of(HELLO_BYTES, 0, 0, 0, 1)];
      stranger(node.address.port, { first: part[i % 3] as Bytes, opening: () => undefined });
    }
  };
  let waves = 0;
  const again = setInterval(() => (++waves < 8 ? wave() : clearInterval(again)), 200);
  closing.push(() => clearInterval(again));
  wave();
  const validator = await open([node.address], member);
  await until(() => validator.joined.length > 0 && node.transport.known().length === 1);
  expect(node.transport.peers().length).toBe(1);
});

test('addresses with many connections give way to one with few; an address has its bound', async () => {
  const node = await open([], undefined, true);
  const { port } = node.address;
  const addresses = PLACES.strangers / PLACES.strangersPerAddress;
  for (let i = 0; i < addresses; i++)
    for (let k = 0; k < PLACES.strangersPerAddress; k++) {
      stranger(port, { localAddress: `127.0.0.${2 + i}` });
      await until(() => node.joined.length === i * PLACES.strangersPerAddress + k + 1);
    }
  const ninth = stranger(port, { localAddress: '127.0.0.2' });
  await new Promise((resolve) => ninth.once('close', resolve));
  expect(node.left).toEqual([]);
  for (let k = 0; k < 3; k++) stranger(port, { localAddress: `127.0.0.${100 + k}` });
  await until(() => node.joined.length === PLACES.strangers + 3 && node.left.length === 3);
  // The youngest of crowded addresses went.
  expect(node.left.every((peer) => /^127\.0\.0\.[2-9]#/.test(String(peer)))).toBe(true);
  // One address cannot come again and again.
  let closed = 0;
  for (let k = 0; k < 40; k++) stranger(port, { localAddress: '127.0.0.50' }).on('close', () => closed++);
  await until(() => closed >= 24);
});

test('a member’s name with a false signature, or with one that was overheard, bars the address; no connection of the member is lost', async () => {
  const node = await open([], undefined, true);
  const validator = await open([node.address], member);
  await until(() => validator.joined.length > 0 && node.transport.known().length === 1);
  const closes = (socket: Socket) => new Promise((resolve) => socket.once('close', resolve));
  const { publicKey } = member;
  const claim = (signature: Bytes, localAddress: string): Stranger => {
    const end = new RawEnd(CHAIN, publicKey);
    return { end, opening: (theirs) => end.open(theirs, { publicKey, signature }), localAddress };
  };
  await closes(stranger(node.address.port, claim(new Uint8Array(3_309).fill(1), '127.0.0.7')));
  // Barred: it is not even told hello.
  let told = 0;
  const again = stranger(node.address.port, { opening: () => void told++, localAddress: '127.0.0.7' });
  await closes(again);
  expect(told).toBe(0);
  // A signature for another connection, as one who listens on the wire has it.
  let overheard: Bytes | undefined;
  const own = new RawEnd(CHAIN, publicKey);
  const first = stranger(node.address.port, {
    end: own,
    opening: (theirs) => {
      overheard = signMessage(member.privateKey, own.meet(theirs).message);
      return own.open(theirs, { publicKey, signature: overheard });
    },
    localAddress: '127.0.0.8',
  });
  await until(() => node.joined.length === 2);
  first.destroy();
  await closes(
    stranger(node.address.port, {
      end: own,
      opening: (theirs) => own.open(theirs, { publicKey, signature: overheard as Bytes }),
      localAddress: '127.0.0.9',
    }),
  );
  expect(node.joined.length).toBe(2);
  expect(validator.left).toEqual([]);
});

test('false identities by the hundred cost a bounded number of checks, and a member that comes meanwhile is known in the end', async () => {
  const node = await open();
  let closed = 0;
  const identity = { publicKey: member.publicKey, signature: new Uint8Array(3_309) };
  const forge = () => {
    const end = new RawEnd(CHAIN, member.publicKey);
    stranger(node.address.port, { end, opening: (theirs) => end.open(theirs, identity) }).on('close', () => closed++);
  };
  // More than are checked at once.
  for (let i = 0; i < 400; i++) {
    forge();
    if (i % 20 === 19) await new Promise((resolve) => setImmediate(resolve));
  }
  const validator = await open([node.address], otherMember);
  await until(() => closed > 100);
  await until(() => validator.joined.length > 0 && node.transport.known().length === 1);
});

test('a member that comes back is there at once: its newest connections stay', async () => {
  const node = await open();
  const comings = [];
  for (let i = 0; i < PLACES.perMember + 1; i++) {
    comings.push(await open([node.address], member));
    await until(() => node.joined.length === i + 1);
  }
  await until(() => node.left.length === 1);
  expect(node.left).toEqual([node.joined[0]]);
});

test('strangers that flood leave the members’ messages their way', async () => {
  const node = await open();
  for (let i = 0; i < 16; i++) {
    const end = new RawEnd(CHAIN);
    const junk = () => concat(...Array.from({ length: 10 }, () => end.frame(new Uint8Array(6_000).fill(200))));
    // Far more than is read of it; what it costs to make must not be what this test is about.
    let left = 12 * 1024 * 1024;
    const more = () => {
      for (let isFree = true; isFree && left > 0; left -= 60_000) isFree = socket.write(junk());
    };
    const socket = stranger(node.address.port, {
      end,
      opening: (theirs) => {
        setImmediate(more);
        return end.open(theirs);
      },
    });
    socket.on('drain', more);
  }
  const validator = await open([node.address], member);
  await until(() => validator.joined.length > 0 && node.transport.known().length === 1);
  const [peer] = node.transport.known();
  for (let i = 0; i < 100; i++) validator.transport.send(validator.joined[0] as Peer, Uint8Array.of(1, i));
  await until(() => node.heard.filter((message) => message.peer === peer).length === 100);
  // Members have 80 MiB at once, all strangers together no more than that.
  expect(node.heard.length).toBeLessThan(100_000);
});

test('strangers that take all that is sent to them have a bounded part of the line; a member gets everything', async () => {
  const node = await open([], undefined, true);
  const validator = await open([node.address], member);
  await until(() => node.transport.known().length === 1);
  const began = steadyMillis();
  const took: number[] = [];
  for (let i = 0; i < 12; i++) {
    took.push(0);
    // The last three share an address.
    stranger(node.address.port, { localAddress: `127.0.0.${20 + Math.min(i, 9)}` }).on('data', (piece) => {
      took[i] = (took[i] as number) + piece.length;
    });
  }
  await until(() => node.joined.length === 13);
  const message = new Uint8Array(400_000).fill(1);
  const rounds = 60;
  for (let round = 1; round <= rounds; round++) {
    for (const peer of node.transport.peers()) node.transport.send(peer, message);
    await until(() => validator.heard.length === round);
  }
  await new Promise((resolve) => setTimeout(resolve, 200));
  const seconds = (steadyMillis() - began) / 1_000;
  const { burst, perSecond } = SENT_TO_STRANGERS;
  const sum = (amounts: readonly number[]) => amounts.reduce((total, amount) => total + amount, 0);
  const most = 1_024 * (burst + perSecond * seconds) + 100_000;
  expect(sum(took)).toBeLessThan(most);
  // Nobody lost its connection for it, and every address has its part.
  expect(node.left).toEqual([]);
  for (const part of [...took.slice(0, 9), sum(took.slice(9))]) {
    expect(part).toBeGreaterThan(1_000_000);
    expect(part).toBeLessThan(most / 2);
  }
});

test('places: whatever comes, members and named addresses keep theirs, and no count is exceeded', () => {
  for (let run = 0; run < 40; run++) {
    let places: Place[] = [];
    let peer = 0;
    for (let step = 0; step < 250; step++) {
      const address = `10.0.0.${random(run % 20 === 0 ? 1 : 40)}`;
      const isNear = random(10) === 0;
      const before = places;
      const standing = (['waiting', 'stranger', 'stranger', 'stranger', 'named', 'member'] as const)[
        random(6)
      ] as Place['standing'];
      const name = standing === 'member' ? `m${random(3)}` : undefined;
      const found =
        standing === 'waiting'
          ? admit(places, { address, isNear }, random)
          : placeFor(places, { address, isNear, standing, member: name });
      if (!found.admitted) continue;
      places = places.filter((place) => place.peer !== found.evict);
      places.push({ peer: ++peer, address, isNear, standing, member: name });
      const gone = before.filter((place) => !places.includes(place));
      expect(gone.length).toBeLessThanOrEqual(1);
      // Nobody is pushed out by another kind.
      for (const place of gone) expect([place.standing, place.member]).toEqual([standing, name]);
      const of = (kind: Place['standing']) => places.filter((place) => place.standing === kind);
      expect(of('waiting').length).toBeLessThanOrEqual(PLACES.waiting);
      expect(of('stranger').length).toBeLessThanOrEqual(PLACES.strangers);
      expect(of('member').length).toBeLessThanOrEqual(3 * PLACES.perMember);
    }
  }
});

/** From its address. */
function comes(port: number, localAddress = '127.0.0.5'): Socket {
  const end = new RawEnd(CHAIN, member.publicKey);
  return stranger(port, {
    end,
    opening: (theirs) => {
      const signature = signMessage(member.privateKey, end.meet(theirs).message);
      return end.open(theirs, { publicKey: member.publicKey, signature });
    },
    localAddress,
  });
}

test('a member that broke a rule has no other connection either, and comes from no other address until it is forgiven', async () => {
  let now = steadyMillis();
  const node = await open([], undefined, true, () => now);
  const { port } = node.address;
  for (const address of ['127.0.0.5', '127.0.0.6']) comes(port, address);
  await until(() => node.transport.known().length === 2);
  const other = await open([node.address], otherMember);
  await until(() => node.transport.known().length === 3);
  node.transport.drop(node.joined[0] as Peer, 'a false certificate');
  expect(node.transport.known()).toHaveLength(1);
  let isRefused = false;
  comes(port, '127.0.0.7').once('close', () => {
    isRefused = true;
  });
  await until(() => isRefused || node.joined.length > 3);
  expect([isRefused, node.joined.length, other.left.length]).toEqual([true, 3, 0]);
  now += BARRED_MILLIS + 1;
  comes(port, '127.0.0.8');
  await until(() => node.transport.known().length === 2);
});

/** Strangers from ever new addresses, twice as many as are let in at once; how many of them were told hello. */
async function newcomers(port: number): Promise<number> {
  let [told, closed] = [0, 0];
  const opening = () => void told++;
  for (let i = 0; i < 2 * NEWCOMERS.burst; i++) {
    stranger(port, { opening, localAddress: `127.1.${i >> 8}.${i & 255}` }).on('close', () => closed++);
    // As many as may wait at once are not closed by others.
    await until(() => told + closed > i - 100);
  }
  await until(() => told + closed >= 2 * NEWCOMERS.burst);
  return told;
}

test('connections from addresses without end cost a bounded number of handshakes; a member comes back from where it was known', async () => {
  const now = steadyMillis();
  const node = await open([], undefined, true, () => now);
  const first = comes(node.address.port);
  await until(() => node.transport.known().length === 1);
  first.destroy();
  await until(() => node.left.length === 1);
  expect(await newcomers(node.address.port)).toBeLessThanOrEqual(NEWCOMERS.burst);
  comes(node.address.port);
  await until(() => node.transport.known().length === 1);
});

test('a validator that starts again while strangers come from addresses without end: a member comes back from where it was known before', async () => {
  const directory = temporaryDirectory();
  mkdirSync(join(directory, 'consensus'));
  const memory = () => ({
    remembered: readMembers(directory, silentLog),
    remember: (known: RememberedMembers) => rememberMembers(directory, known, silentLog),
  });
  const now = steadyMillis();
  const before = await open([], undefined, true, () => now, memory());
  comes(before.address.port);
  await until(() => before.transport.known().length === 1);
  await before.transport.close();
  await until(() => readMembers(directory, silentLog).length === 1);
  const node = await open([], undefined, true, () => now, memory());
  expect(await newcomers(node.address.port)).toBeLessThanOrEqual(NEWCOMERS.burst);
  comes(node.address.port);
  await until(() => node.transport.known().length === 1);
  // Nothing that can be in the file ends the next start, and what cannot be read is said.
  const said: string[] = [];
  const log = {
    ...silentLog,
    warn: (text: string, fields = {}) => void said.push(`${text} ${JSON.stringify(fields)}`),
  };
  const good = { validator: 'ab'.repeat(48), addresses: ['b'] };
  const bad = [null, 1, { validator: 1 }, { ...good, validator: 'AB' }, { ...good, addresses: [1, 'b'] }];
  for (const text of ['', '{}', JSON.stringify([...bad, good])]) {
    writeFileSync(join(directory, 'consensus', 'members.json'), text);
    expect(readMembers(directory, log)).toEqual(text.length > 2 ? [good] : []);
  }
  expect(said).toHaveLength(3);
  expect(said[2]).toContain('"members":5');
});

test('checks of a member’s key that strangers use up leave it those from where it was known', async () => {
  const identities = new OverlayIdentities({ steady: () => 0, members: () => members });
  const message = new Uint8Array(48);
  const { publicKey, privateKey } = member;
  const claim = { identity: { publicKey, signature: signMessage(privateKey, message) }, message };
  const forged = { ...claim, message: new Uint8Array(48).fill(1) };
  expect(await identities.verify(claim, 'home')).toBe('true');
  identities.proved(publicKey, 'home');
  for (let i = 0; i < CHECKS.burst; i++) await identities.verify(forged, `elsewhere ${i}`);
  expect(await identities.verify(claim, 'elsewhere')).toBe('unknown');
  expect(await identities.verify(claim, 'home')).toBe('true');
  // With its next key it is known there too.
  const next = { ...claim, identity: { ...claim.identity, publicKey: otherMember.publicKey } };
  for (let i = 0; i < CHECKS.burst; i++) await identities.verify(next, `elsewhere ${i}`);
  expect([await identities.verify(next, 'elsewhere'), await identities.verify(next, 'home')]).toEqual([
    'unknown',
    'false',
  ]);
  // Of each member the last addresses are familiar: another one’s do not push them out.
  for (let i = 0; i < 2_000; i++) identities.proved(otherMember.publicKey, `many ${i}`);
  expect([identities.isFamiliar('home'), identities.isFamiliar('many 0')]).toEqual([true, false]);
});

test('where all addresses are as crowded any connection makes room, not always the oldest', () => {
  const all = Array.from({ length: PLACES.waiting }, (_, peer) => peer);
  const places: Place[] = all.map((peer) => ({
    peer,
    address: `10.0.0.${peer}`,
    isNear: false,
    standing: 'waiting',
  }));
  const evicted = (drawn: number) => {
    const found = admit(places, { address: '10.1.0.1', isNear: false }, (limit) => drawn % limit);
    return found.admitted ? found.evict : undefined;
  };
  expect(all.map((drawn) => evicted(drawn))).toEqual(all);
});

test('a member that is dialled by another and hands its connections on to a third does not end the one between those two', () => {
  const place = (peer: string, address: string) =>
    ({ peer, address, isNear: false, standing: 'member', member: 'honest' }) as const;
  let places: Place[] = [place('its own', '192.0.2.1')];
  const come = (peer: string, address: string) => {
    const found = placeFor(places, place(peer, address));
    if (found.admitted) places = [...places.filter((each) => each.peer !== found.evict), place(peer, address)];
  };
  for (let i = 0; i < 10; i++) come(`handed on ${i}`, `198.51.100.${i % 3}`);
  expect(places.map(({ peer }) => peer)).toEqual(['its own', 'handed on 9']);
  // It comes back: its connection of before is the one that is dead.
  come('its next', '192.0.2.1');
  expect(places.map(({ peer }) => peer)).toEqual(['handed on 9', 'its next']);
});
