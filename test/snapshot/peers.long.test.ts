/** Snapshots of peers: a new node with a trusted cut and nothing else fetches one from several peers, of which some lie or are silent, goes on after an end, and believes only what its cut proves. */
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { fetchDirectory, fetchSnapshot } from '../../node/network/snapshots/fetch-snapshot.ts';
import { PATIENCE } from '../../node/network/snapshots/part-fetch.ts';
import { CHUNK_BYTES, decodeChunk, encodeChunk, encodeOffers } from '../../node/network/snapshots/snapshot-messages.ts';
import { answerSnapshot } from '../../node/network/snapshots/snapshot-server.ts';
import { answerSync } from '../../node/network/sync/cut-server.ts';
import type { SyncQuestion } from '../../node/network/sync/sync-messages.ts';
import { installSnapshot } from '../../node/snapshot/install-snapshot.ts';
import type { Trust } from '../../node/snapshot/snapshot-options.ts';
import { SnapshotShelf } from '../../node/snapshot/snapshot-shelf.ts';
import { toHex } from '../../protocol/bytes.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { freePort } from '../../runtime/free-port.ts';
import { createLogger, readLevelFilter } from '../../runtime/log/log.ts';
import { level } from '../level.ts';
import { hostHere } from '../network/host-here.ts';
import { lying as lyingNode, until } from '../network/peers.ts';
import { RawPeer } from '../network/raw-peer.ts';
import { quietLog } from '../quiet-log.ts';
import { SNAPSHOT, SnapshotBed } from './snapshot-bed.ts';

let made: SnapshotBed;
let shelf: SnapshotShelf;
let steady = 0;
/** Milliseconds that the clock of those that fetch is ahead. */
let waited = 0;
const cutIdOf = (height: number) => made.source.node.chain.cut(height)?.cutId;
const shelfOf = (directory: string) => new SnapshotShelf({ directory, cutIdOf, steady: () => steady, log: quietLog });

beforeAll(async () => {
  made = await SnapshotBed.open();
  shelf = shelfOf(made.folder);
  await shelf.look();
});
afterAll(async () => {
  await shelf.close();
  await made.close();
});

const open: RawPeer[] = [];
afterEach(async () => {
  for (const peer of open.splice(0)) await peer.close();
});

type Served = (question: SyncQuestion) => Promise<Uint8Array | undefined>;

const honest: Served = async (question) =>
  question.type === 'snapshots' || question.type === 'part'
    ? await answerSnapshot(shelf, question)
    : answerSync(made.source.node.chain, question);

/** What an honest one would answer, with one bit of some parts changed. */
const lying =
  (isLied: (part: number) => boolean): Served =>
  async (question) => {
    const answer = await honest(question);
    if (question.type !== 'part' || !isLied(question.part) || answer === undefined) return answer;
    const { length, bytes } = decodeChunk(answer);
    const other = Uint8Array.from(bytes);
    other[bytes.length >> 1] = (other[bytes.length >> 1] as number) ^ 1;
    return encodeChunk({ length, bytes: other });
  };

/** A node that fetches; peers of the test come to it. */
async function fetching(name: string, trust: Trust, onPart: (parts: number) => void = () => undefined) {
  const closing = new AbortController();
  const port = await freePort();
  const lines: string[] = [];
  const log = createLogger(
    'test',
    { filter: readLevelFilter('info'), format: 'text' },
    { sink: { write: (line: string) => void lines.push(line) } as never, now: Date.now },
  );
  const peers = { listen: [`/ip4/127.0.0.1/tcp/${port}`], announce: [], bootstrap: [], maxPeers: 50 };
  const dataDir = join(made.bed.directory, name);
  const { genesis } = made.source.node.chain;
  const found = fetchSnapshot(
    { dataDir, peers, trust, genesis, release: '0.1.0' },
    {
      log,
      now: () => made.bed.now,
      steady: () => steadyMillis() + waited,
      signal: closing.signal,
      onPart,
      openPeers: hostHere,
    },
  );
  found.catch(() => undefined);
  const join_ = async (serve: Served): Promise<RawPeer> => {
    const peer = await RawPeer.open(made.source.node.chain.chainId, { sync: serve, height: () => SNAPSHOT });
    open.push(peer);
    await until(() =>
      peer.join(`/ip4/127.0.0.1/tcp/${port}`).then(
        () => true,
        () => false,
      ),
    );
    return peer;
  };
  return { found, lines, dataDir, closing, join: join_ };
}

const fileOf = (dataDir: string) => join(fetchDirectory(dataDir), 'snapshot');
const isAlone = (peer: RawPeer) => peer.host.getConnections().length === 0;

test('false parts are not kept and their senders barred; the rest comes from the honest, and the store is that of the snapshot', async () => {
  const { found, join: come, dataDir } = await fetching('fetched', { cutId: made.trust });
  const falseHead = await come(lying((part) => part === 0));
  await until(() => isAlone(falseHead));
  expect(existsSync(fileOf(dataDir)) && readFileSync(fileOf(dataDir)).length > 8).toBe(false);
  const falseParts = await come(lying((part) => part > 8));
  await until(() => isAlone(falseParts));
  const silent = await come(async (question) =>
    question.type === 'part' ? new Promise(() => undefined) : await honest(question),
  );
  await until(() => silent.asked.includes('sync part'));
  await come(honest);
  await come(honest);
  const { file, cutId } = await found;
  expect(readFileSync(file).equals(readFileSync(made.file))).toBe(true);
  await installSnapshot(made.install('fetched', { file, trust: cutId }));
  const node = await made.bed.openChain('fetched');
  expect(node.chain.head()).toMatchObject({ height: SNAPSHOT, cutId: made.trust });
  await node.close();
});

test('one that ends on the way goes on where it was, and fetches again what the disk has spoiled', async () => {
  const parts = { first: 0, last: 0 };
  const first = await fetching('goes-on', { cutId: made.trust }, (number) => {
    parts.first = number;
    if (number === 40) first.closing.abort();
  });
  await first.join(honest);
  await expect(first.found).rejects.toMatchObject({ code: 'snapshot_not_here' });
  expect(parts.first).toBeGreaterThanOrEqual(40);
  const asked: number[] = [];
  const noting: Served = async (question) => {
    if (question.type === 'part') asked.push(question.part);
    return await honest(question);
  };
  // What a power cut leaves.
  appendFileSync(fileOf(first.dataDir), Buffer.alloc(999, 7));
  const second = await fetching('goes-on', { cutId: made.trust }, (number) => {
    if (number === parts.first + 20) second.closing.abort();
  });
  await second.join(noting);
  await expect(second.found).rejects.toMatchObject({ code: 'snapshot_not_here' });
  expect(Math.min(...asked)).toBe(parts.first);
  // A bit of a part that was kept.
  const kept = readFileSync(fileOf(first.dataDir));
  kept[kept.length - 200] = (kept[kept.length - 200] as number) ^ 1;
  writeFileSync(fileOf(first.dataDir), kept);
  const third = await fetching('goes-on', { cutId: made.trust });
  await third.join(honest);
  const { file } = await third.found;
  expect(readFileSync(file).equals(readFileSync(made.file))).toBe(true);
});

test('a snapshot before the trusted cut is proven by the headers in between, one after it by the committee of its epoch', async () => {
  const { chain } = made.source.node;
  const at = (height: number): Trust => ({ height, cutId: cutIdOf(height) as Uint8Array });
  for (const height of [SNAPSHOT + 2, SNAPSHOT - 5]) {
    const { found, join: come } = await fetching(`by-${height}`, at(height));
    await come(honest);
    expect(toHex((await found).cutId)).toBe(toHex(made.trust));
  }
  // Another chain in between is no proof, and costs its sender everything.
  const liar = await fetching('false-headers', at(SNAPSHOT + 2));
  const cut = (height: number) => chain.cut(height === SNAPSHOT + 1 ? height - 1 : height);
  const other = lyingNode(made.source.node, { cut }).chain;
  const falseHeaders = await liar.join(async (question) =>
    question.type === 'headers' ? answerSync(other, question) : await honest(question),
  );
  await until(() => isAlone(falseHeaders));
  const falseOffer = await liar.join(async (question) =>
    question.type === 'snapshots'
      ? encodeOffers([{ height: SNAPSHOT, cutId: new Uint8Array(48) }])
      : await honest(question),
  );
  await until(() => isAlone(falseOffer));
  await liar.join(honest);
  await liar.found;
});

const NOTHING = new Uint8Array(0);

// Who is waited for, and for how long, is in test/network/part-fetch.long.test.ts and test/network/snapshot-offers.test.ts too.
if (level === 'deep')
  test('a newer snapshot that is offered and never sent does not keep a node from another one', async () => {
    const before = SNAPSHOT - 5;
    const fetched = await fetching('newer', { height: before, cutId: cutIdOf(before) as Uint8Array });
    const madeUp = (height: number) => ({ height, cutId: made.trust });
    let another = SNAPSHOT;
    const busy = await fetched.join(async (question) => {
      if (question.type === 'snapshots') another += 96;
      const others = [96_000, 192_000, 288_000].map((more) => madeUp(SNAPSHOT + more));
      if (question.type === 'snapshots') return encodeOffers([madeUp(another), ...others]);
      return question.type === 'part' ? NOTHING : await honest(question);
    });
    await until(() => busy.asked.includes('sync part'));
    await fetched.join(honest);
    waited += PATIENCE.look.provenMillis;
    expect(toHex((await fetched.found).cutId)).toBe(toHex(made.trust));
  });

test('one that offers a snapshot under another height does not keep a node from it, and is barred', async () => {
  const later = SNAPSHOT + 2;
  const fetched = await fetching('renamed', { height: later, cutId: cutIdOf(later) as Uint8Array });
  const liar = await fetched.join(async (question) => {
    if (question.type === 'snapshots') return encodeOffers([{ height: SNAPSHOT + 96_000, cutId: made.trust }]);
    return await honest(question.type === 'part' ? { ...question, height: SNAPSHOT } : question);
  });
  await until(() => isAlone(liar));
  await fetched.join(honest);
  expect(toHex((await fetched.found).cutId)).toBe(toHex(made.trust));
});

test('without a height, those that claim the trusted cut at another one and send nothing do not keep a node from it', async () => {
  const fetched = await fetching('claimed', { cutId: made.trust });
  const claim = (height: number) => encodeOffers([{ height, cutId: made.trust }]);
  for (const more of [96, 192]) {
    const liar = await fetched.join(async (question) =>
      question.type === 'snapshots' ? claim(SNAPSHOT + more) : NOTHING,
    );
    await until(() => liar.asked.some((question) => question === 'sync part' || question === 'sync headers'));
  }
  await fetched.join(honest);
  expect(toHex((await fetched.found).cutId)).toBe(toHex(made.trust));
  expect(fetched.lines.filter((line) => /another snapshot is looked for/.test(line))).toEqual([]);
});

if (level === 'deep')
  test('those that stop sending are not waited for; what they sent is not fetched again', async () => {
    let last = 0;
    const fetched = await fetching('stops', { cutId: made.trust }, (parts) => {
      last = parts;
    });
    const stops = await fetched.join(async (question) =>
      question.type === 'part' && last >= 40 ? NOTHING : await honest(question),
    );
    await until(() => last >= 40);
    const parts = last;
    waited += PATIENCE.fetch.provenMillis;
    await until(() => fetched.lines.some((line) => /another snapshot is looked for/.test(line)));
    await stops.close();
    const asked: number[] = [];
    await fetched.join(async (question) => {
      if (question.type === 'part') asked.push(question.part);
      return await honest(question);
    });
    await fetched.found;
    expect(Math.min(...asked)).toBeGreaterThanOrEqual(parts);
  });

test('over the end of an epoch, without a height, or with an identifier that nobody knows nothing is believed; who has another cut there pays nothing', async () => {
  const says = /no peer has a snapshot that the trusted cut proves/;
  const epochBefore = SNAPSHOT - 36;
  const trusts: [string, Trust][] = [
    ['epoch', { height: epochBefore, cutId: cutIdOf(epochBefore) as Uint8Array }],
    ['no height', { cutId: cutIdOf(SNAPSHOT - 5) as Uint8Array }],
    ['unknown', { height: SNAPSHOT - 5, cutId: new Uint8Array(48).fill(1) }],
    ['beyond', { height: 10_000, cutId: made.trust.map((byte) => byte ^ 1) }],
  ];
  for (const [name, trust] of trusts.filter(([name]) => level === 'deep' || name !== 'no height')) {
    const fetched = await fetching(`none-${name}`, trust);
    const peer = await fetched.join(honest);
    await until(() => peer.asked.includes('sync snapshots') && fetched.lines.some((line) => says.test(line)));
    if (name === 'epoch') await until(() => peer.asked.includes('sync part'));
    expect(isAlone(peer), name).toBe(false);
    fetched.closing.abort();
    await expect(fetched.found, name).rejects.toMatchObject({ code: 'snapshot_not_here' });
    expect(existsSync(fileOf(fetched.dataDir)), name).toBe(false);
  }
});

test('one that is too old is refused, and so is an old trusted cut', async () => {
  const now = made.bed.now;
  made.bed.now += 8 * 24 * 60 * 60 * 1000;
  try {
    const { found, join: come } = await fetching('old', { cutId: made.trust });
    await come(honest);
    // The peer is not to blame.
    await expect(found).rejects.toMatchObject({ code: 'snapshot_too_old' });
    // Keys of its committee may be sold by now: the certificate of a later snapshot is not even looked at.
    const trust = { height: SNAPSHOT - 5, cutId: cutIdOf(SNAPSHOT - 5) as Uint8Array };
    const later = await fetching('old-trust', trust);
    const peer = await later.join(honest);
    await expect(later.found).rejects.toMatchObject({ code: 'snapshot_too_old' });
    expect(peer.asked).not.toContain('sync part');
  } finally {
    made.bed.now = now;
  }
});

test('the shelf offers whole files of the own chain only, reads within a part, and lets a deleted one be read to its end', async () => {
  const folder = join(made.bed.directory, 'shelf');
  mkdirSync(folder);
  const name = `snapshot-${SNAPSHOT}`;
  const short = readFileSync(made.file).subarray(0, -1);
  const shelved = async () => {
    const other = shelfOf(folder);
    await other.look();
    const offers = other.offers().map(({ height }) => height);
    await other.close();
    return offers;
  };
  symlinkSync(made.file, join(folder, name));
  expect(await shelved()).toEqual([]);
  rmSync(join(folder, name));
  mkdirSync(join(folder, name));
  expect(await shelved()).toEqual([]);
  rmSync(join(folder, name), { recursive: true });
  for (const [file, bytes] of [
    [name, short],
    [name, Buffer.from('SVCSNAP1')],
    [name, Buffer.alloc(0)],
    [`snapshot-${SNAPSHOT - 96}`, readFileSync(made.file)],
    [`snapshot-${SNAPSHOT}.part`, readFileSync(made.file)],
    // A cut that this chain does not have yet.
    ['snapshot-100000', readFileSync(made.file)],
  ] as const) {
    writeFileSync(join(folder, file), bytes);
    expect(await shelved(), file).toEqual([]);
    rmSync(join(folder, file));
  }
  cpSync(made.file, join(folder, name));
  const lasting = shelfOf(folder);
  await lasting.look();
  expect(lasting.offers()).toEqual([{ height: SNAPSHOT, cutId: made.trust }]);
  const whole = await lasting.part(SNAPSHOT, 0, 0, CHUNK_BYTES);
  if (whole === undefined || whole === 'busy') throw new Error('the head is not there');
  expect(await lasting.part(SNAPSHOT, 0, 10, 5)).toEqual({
    length: whole.length,
    bytes: Buffer.from(whole.bytes.subarray(10, 15)),
  });
  for (const [height, part, from] of [
    [SNAPSHOT, 0, whole.length],
    [SNAPSHOT, 2 ** 32 - 1, 0],
    [SNAPSHOT + 96, 0, 0],
  ] as const)
    expect(await lasting.part(height, part, from, CHUNK_BYTES)).toBeUndefined();
  const many = await Promise.all(Array.from({ length: 9 }, () => lasting.part(SNAPSHOT, 0, 0, 1)));
  expect(many.filter((answer) => answer === 'busy').length).toBe(1);
  rmSync(join(folder, name));
  await lasting.look();
  expect(await lasting.part(SNAPSHOT, 1, 0, 10)).toBeDefined();
  steady += 59_999;
  await lasting.look();
  expect(await lasting.part(SNAPSHOT, 1, 0, 10)).toBeDefined();
  steady += 60_000;
  await lasting.look();
  expect([lasting.offers(), await lasting.part(SNAPSHOT, 1, 0, 10)]).toEqual([[], undefined]);
  await lasting.close();
});
