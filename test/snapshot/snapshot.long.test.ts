/** Nodes that begin with a snapshot: it is written by a running node, every part of it proves itself, and such a node follows the chain to the same states. */
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApi } from '../../node/api/api.ts';
import { newIdentity } from '../../node/api/identity.ts';
import { CutFeed } from '../../node/events.ts';
import type { CutRecord } from '../../node/full-node.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { developmentFiles, writeDevelopmentNetwork } from '../../node/genesis/development-network.ts';
import { INDEX_NAME } from '../../node/index/index-keys.ts';
import { IndexReader } from '../../node/index/index-reader.ts';
import { rebuildIndex } from '../../node/index/rebuild.ts';
import { openNode } from '../../node/open-node.ts';
import { createSnapshot } from '../../node/snapshot/create-snapshot.ts';
import { type InstallSettings, installSnapshot } from '../../node/snapshot/install-snapshot.ts';
import { readSnapshot } from '../../node/snapshot/read-snapshot.ts';
import { snapshotCommands } from '../../node/snapshot/snapshot-commands.ts';
import type { SnapshotPlan } from '../../node/snapshot/snapshot-options.ts';
import { KEYS } from '../../node/store/keys.ts';
import { LedgerStore } from '../../node/store/ledger-store.ts';
import { formatAddress } from '../../protocol/address.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { blockId } from '../../protocol/ledger/header.ts';
import { validatorId } from '../../protocol/staking/names.ts';
import type { Terminal } from '../../runtime/program.ts';
import { count, seed } from '../level.ts';
import { headOf, until } from '../network/peers.ts';
import { quickHash, START_MILLIS } from '../node/bed.ts';
import { quietLog } from '../quiet-log.ts';
import { randomOf } from '../random.ts';
import { SNAPSHOT, SnapshotBed } from './snapshot-bed.ts';

const DAY = 24 * 60 * 60 * 1000;
const random = randomOf(seed);
const ignore = { head: () => undefined, work: () => undefined, piece: () => undefined };

let made: SnapshotBed;
beforeAll(async () => {
  made = await SnapshotBed.open();
});
afterAll(() => made.close());

const leftOf = (name: string): string[] => {
  const folder = join(made.bed.directory, name);
  return existsSync(folder) ? readdirSync(folder) : [];
};

async function refused(name: string, other: Partial<InstallSettings>, error: object): Promise<void> {
  await expect(installSnapshot(made.install(name, other)), name).rejects.toMatchObject(error);
  expect(leftOf(name)).toEqual([]);
}

const altered = (name: string, alter: (bytes: Buffer) => Buffer): string => {
  const path = join(made.bed.directory, name);
  writeFileSync(path, alter(readFileSync(made.file)));
  return path;
};

const flipped = (bytes: Buffer, bit: number): Buffer => {
  bytes[bit >> 3] = (bytes[bit >> 3] as number) ^ (1 << (bit & 7));
  return bytes;
};

test('a node from a snapshot has the same states as the others, while blocks from before it are paid and after', async () => {
  const { source, bed } = made;
  expect(readdirSync(made.folder).sort()).toEqual(['notes', `snapshot-${SNAPSHOT}`, 'snapshot-5']);
  const figures = await installSnapshot(made.install('pruned'));
  expect(figures).toMatchObject({ head: { state: { height: SNAPSHOT, positions: { count: 3 } } } });
  expect(leftOf('pruned')).toEqual(['store']);
  const pruned = await bed.start('pruned', { bootstrap: [source.view.addresses[0] as string], follows: true });
  const { chain } = pruned.node;
  expect([chain.historyFrom(), chain.bodiesFrom()]).toEqual([SNAPSHOT + 1, SNAPSHOT + 1]);
  const [first, last] = [SNAPSHOT - 95, SNAPSHOT].map((height) => source.node.chain.cut(height) as CutRecord);
  for (const { header, target, blockIds } of [first, last] as CutRecord[])
    expect(chain.cut(header.height)).toMatchObject({ target, blockIds });
  for (let i = 0; i < 5; i++) {
    await made.seal(20);
    await until(() => chain.head().height === source.node.chain.head().height);
    expect(headOf(pruned)).toBe(headOf(source));
  }
  expect(chain.head().height).toBeGreaterThan(SNAPSHOT + 96);
  // Its parent was registered before the snapshot: refused at the own door, and taken with the cut that names it.
  const late = made.blockOn((source.node.chain.cut(1) as CutRecord).blockIds[0] as Bytes);
  const refusal = { status: 'refused', error: { code: 'parent_unknown' } };
  expect(await pruned.node.submitBlock(late.header, late.body)).toMatchObject(refusal);
  expect(await source.node.submitBlock(late.header, late.body)).toMatchObject({ status: 'accepted' });
  await made.seal(1);
  await until(() => chain.head().height === source.node.chain.head().height);
  expect(headOf(pruned)).toBe(headOf(source));
  expect(chain.block(blockId(late.header))).toMatchObject({ registeredHeight: chain.head().height });
  const [id] = (last as CutRecord).blockIds as [Bytes];
  expect(chain.block(id)?.reward).toMatchObject({ state: 'paid' });
  expect(chain.block(id)?.reward).toEqual(source.node.chain.block(id)?.reward);
  const validator = validatorId((source.node.chain.genesis.validators[0] as { publicKey: Bytes }).publicKey);
  expect(chain.staking().delegationCount(validator)).toBe(1);
  await pruned.close();
  // The options of the first start do no harm, and it makes no cuts although it has the keys.
  expect(await installSnapshot(made.install('pruned'))).toBeUndefined();
  const again = await bed.openChain('pruned', true);
  expect(toHex(again.chain.head().stateRoot)).toBe(toHex(source.node.chain.head().stateRoot));
  expect(again.makesCuts).toBe(false);
  await again.close();
});

test('the index begins with the unspent outputs, and cannot be made again', async () => {
  await installSnapshot(made.install('indexed'));
  const store = await LedgerStore.open(join(made.bed.directory, 'indexed', 'store'));
  const index = new IndexReader(store.reader(INDEX_NAME), () => SNAPSHOT);
  const bob = developmentKey('bob').address;
  const value = { atoms: 5n * BigInt(made.ofBob), utxos: made.ofBob, changed: SNAPSHOT };
  expect(index.balance(bob)).toEqual({ height: SNAPSHOT, value });
  expect((await index.unspent(bob, undefined, 1_000)).value.length).toBe(made.ofBob);
  const scratch = await LedgerStore.open(join(made.bed.directory, 'scratch'), { durable: false });
  await expect(rebuildIndex(store, scratch, () => undefined)).rejects.toMatchObject({ code: 'index_body_missing' });
  await scratch.close();
  await store.close();
});

test('the API says of what the snapshot left out that it is not here', async () => {
  const { source, bed } = made;
  await installSnapshot(made.install('served'));
  const served = await bed.openChain('served');
  const api = await startApi(
    { bind: { host: '127.0.0.1', port: 0 }, version: '0.0.0', network: 'development' },
    { identity: newIdentity(), now: () => bed.now, log: quietLog },
  );
  api.serve(served);
  const get = async (path: string) =>
    (await (await fetch(`http://127.0.0.1:${api.address.port}${path}`)).json()) as Record<string, unknown>;
  const stateRoot = toHex((source.node.chain.cut(SNAPSHOT) as CutRecord).header.stateRoot);
  expect(await get('/v1/chain/head')).toMatchObject({ finalized_height: SNAPSHOT, cut: { state_root: stateRoot } });
  expect(await get('/v1/cuts')).toEqual({ api_version: 1, finalized_height: SNAPSHOT, cuts: [] });
  for (const part of ['transactions', 'changes', 'rewards'])
    for (const height of [SNAPSHOT, 1])
      expect(await get(`/v1/cuts/${height}/${part}`)).toMatchObject({ error: { code: 'cut_pruned' } });
  const changes = async (after: number) => {
    const body = JSON.stringify({
      addresses: [formatAddress(developmentKey('bob').address, 'development')],
      after_height: after,
    });
    const headers = { 'content-type': 'application/json' };
    return await (
      await fetch(`http://127.0.0.1:${api.address.port}/v1/address/changes`, { method: 'POST', headers, body })
    ).json();
  };
  expect(await changes(SNAPSHOT - 1)).toMatchObject({ error: { code: 'cut_pruned' } });
  expect(await changes(SNAPSHOT)).toMatchObject({ changes: [] });
  const [id] = (source.node.chain.cut(SNAPSHOT) as CutRecord).blockIds as [Bytes];
  expect(await get(`/v1/blocks/${toHex(id)}`)).toMatchObject({
    registered_cut: { height: SNAPSHOT },
    reward: { state: 'pending' },
    transactions: null,
  });
  expect(await get('/v1/node/status')).toMatchObject({ indexed_height: SNAPSHOT, bodies_from_height: SNAPSHOT + 1 });
  const feed = new CutFeed({}, { node: served });
  expect([SNAPSHOT - 1, SNAPSHOT].map((after) => feed.reaches(after))).toEqual([false, true]);
  feed.close();
  await api.close();
  await served.close();
});

test('a validator neither begins with a snapshot nor runs where a node did', async () => {
  const network = join(made.bed.directory, 'network');
  await writeDevelopmentNetwork(network, { timestampMillis: START_MILLIS, validators: 2 });
  const { key, password } = developmentFiles(network);
  await installSnapshot(made.install('validator'));
  const start = async (snapshots: SnapshotPlan) => {
    const stops: (() => Promise<void> | void)[] = [];
    const files = { keyFile: key(0), passwordFile: password };
    const validators = { files, binds: [{ host: '127.0.0.1', port: 0 }], neighbours: [] };
    try {
      await openNode(
        { network: 'development', dataDir: join(made.bed.directory, 'validator'), validators, snapshots },
        {
          verifier: { prepare: async () => undefined, hash: async (_, header) => quickHash(header) },
          log: quietLog,
          now: () => made.bed.now,
          fault: () => undefined,
          started: (_, stop) => void stops.push(stop),
        },
      );
    } finally {
      for (const stop of stops.reverse()) await stop();
    }
  };
  const says = (message: RegExp) => ({ code: 'validator_pruned', message: expect.stringMatching(message) });
  await expect(start({ begin: { file: made.file, trust: { cutId: made.trust } } })).rejects.toMatchObject(
    says(/without --snapshot/),
  );
  await expect(start({})).rejects.toMatchObject(says(/began with a snapshot/));
});

test('another cut, another chain, an old one: refused, and nothing is left', async () => {
  const { chain } = made.source.node;
  const other = chain.cut(SNAPSHOT - 1) as CutRecord;
  await refused('other-cut', { trust: other.cutId }, { code: 'snapshot_other_cut' });
  await refused('other-network', { network: 'testnet', genesis: undefined }, { code: 'snapshot_other_chain' });
  await refused(
    'other-genesis',
    { genesis: { ...chain.genesis, minimumWork: 1n, initialWork: 3n } },
    { code: 'snapshot_other_chain' },
  );
  const { timestampMillis } = (chain.cut(SNAPSHOT) as CutRecord).header;
  await refused('old', { nowMillis: timestampMillis + 7 * DAY + 1 }, { code: 'snapshot_too_old' });
  expect(await installSnapshot(made.install('week', { nowMillis: timestampMillis + 7 * DAY }))).toBeDefined();
  await refused('missing', { file: join(made.bed.directory, 'nowhere') }, { code: 'ENOENT' });
});

test('cut short, longer, or with one bit changed anywhere: refused, and nothing is left', async () => {
  const { length } = readFileSync(made.file);
  for (const short of [0, 7, 8, 11, 12, 1_000, length >> 1, length - 1]) {
    const file = altered('short-file', (bytes) => bytes.subarray(0, short));
    await refused('short', { file }, { code: 'snapshot_unreadable' });
  }
  const longer = altered('long-file', (bytes) => Buffer.concat([bytes, Buffer.alloc(1)]));
  await refused('long', { file: longer }, { code: 'snapshot_unreadable' });
  const tries = count({ full: 30, deep: 2_000 });
  for (let i = 0; i < tries; i++) {
    // One of each stretch of the file.
    const bit = Math.floor((8 * length * (i + random(1_000) / 1_000)) / tries);
    const file = altered('bit-file', (bytes) => flipped(bytes, bit));
    const error = { code: expect.stringMatching(/^snapshot_(false|unreadable|other_chain|other_cut)$/) };
    if (i % 10 === 0) await refused('bit', { file }, error);
    else await expect(readSnapshot(file, made.trust, ignore), `bit ${bit}`).rejects.toMatchObject(error);
  }
});

test('a snapshot of a store that lies is refused: certificate, states, windows, targets, keys, records and blocks', async () => {
  const { frozen, source } = made;
  const block = (source.node.chain.cut(SNAPSHOT) as CutRecord).blockIds[0] as Bytes;
  const other = (source.node.chain.cut(SNAPSHOT - 1) as CutRecord).blockIds[0] as Bytes;
  const genesis = source.node.chain.genesis.validators.map(({ publicKey }) => validatorId(publicKey)) as [Bytes, Bytes];
  const treasury = developmentKey('treasury');
  const lies: [string, Bytes, Bytes | undefined, RegExp][] = [
    ['certificate', KEYS.certificate(SNAPSHOT), frozen.get(KEYS.certificate(SNAPSHOT - 1)), /certificate of cut 191/],
    ['old state', KEYS.steppedState(SNAPSHOT - 96), frozen.get(KEYS.steppedState(SNAPSHOT)), /old state/],
    ['body', KEYS.body(block), frozen.get(KEYS.body(other)), /a block of cut 191/],
    ['key', KEYS.publicKey(treasury.address), developmentKey('bob').publicKey, /public key/],
    ['record', KEYS.validator(genesis[0]), frozen.get(KEYS.validator(genesis[1])), /record of a validator/],
  ];
  for (const [what, key, value, message] of lies) {
    const file = join(made.bed.directory, 'lie');
    const get = (asked: Bytes) => (Buffer.compare(asked, key) === 0 ? value : frozen.get(asked));
    await createSnapshot({ get }, file);
    await refused(what, { file }, { code: 'snapshot_false', message: expect.stringMatching(message) });
  }
});

test('a snapshot is made after every 96th cut only, and not of a store that lacks a part', async () => {
  const { frozen } = made;
  const file = join(made.bed.directory, 'not-made');
  const without = (key: Bytes) => ({
    get: (asked: Bytes) => (Buffer.compare(asked, key) === 0 ? undefined : frozen.get(asked)),
  });
  const later = made.source.node.frozen();
  const next = (Math.floor((made.source.node.chain.head().height + 1) / 96) + 1) * 96 - 1;
  await expect(createSnapshot(later, file)).rejects.toMatchObject({
    code: 'snapshot_not_here',
    message: expect.stringContaining(`after cut ${next}`),
  });
  await later.close();
  for (const key of [KEYS.steppedState(SNAPSHOT - 96), KEYS.certificate(SNAPSHOT), KEYS.state])
    await expect(createSnapshot(without(key), file)).rejects.toMatchObject({ code: 'snapshot_not_here' });
  await expect(createSnapshot(frozen, file, () => true)).rejects.toMatchObject({ code: 'snapshot_not_here' });
  expect(readdirSync(made.bed.directory).filter((name) => name.startsWith('not-made'))).toEqual([]);
});

test('a node that is killed between two pieces begins again', async () => {
  const { pieces } = await readSnapshot(made.file, made.trust, ignore);
  for (const after of [1, pieces]) {
    const name = `killed-after-${after}`;
    const left = join(made.bed.directory, name, 'store.snapshot');
    await installSnapshot({
      ...made.install(`${name}-first`),
      // What a kill -9 at this moment leaves.
      onPiece: (number) => {
        if (number === after)
          cpSync(join(made.bed.directory, `${name}-first`, 'store.snapshot'), left, { recursive: true });
      },
    });
    expect(leftOf(name)).toEqual(['store.snapshot']);
    writeFileSync(join(left, 'of before'), '');
    expect(await installSnapshot(made.install(name))).toMatchObject({ pieces });
    expect(leftOf(name)).toEqual(['store']);
    // It was begun with an empty store, not on what was left.
    expect(readdirSync(join(made.bed.directory, name, 'store'))).not.toContain('of before');
    const node = await made.bed.openChain(name);
    expect(node.chain.head()).toMatchObject({ height: SNAPSHOT, cutId: made.trust });
    await node.close();
  }
});

test('the commands: what verify says of a file, and create of a store that did not keep what a snapshot needs', async () => {
  const run = async (...words: string[]) => {
    let [out, err] = ['', ''];
    const terminal: Terminal = {
      out: (text) => {
        out += text;
      },
      err: (text) => {
        err += text;
      },
      readText: () => '',
      env: {},
    };
    const code = await snapshotCommands.start(words, terminal);
    return { code, out, err };
  };
  const cutId = toHex(made.trust);
  const said = await run('verify', made.file, '--trust', cutId, '--json');
  expect(JSON.parse(said.out)).toMatchObject({ network: 'development', height: SNAPSHOT, cut_id: cutId });
  expect((await run('verify', made.file)).out).toMatch(new RegExp(`^cut_id +${cutId}$`, 'm'));
  await installSnapshot(made.install('commanded'));
  const data = ['--data-dir', join(made.bed.directory, 'commanded')];
  const out = join(made.bed.directory, 'commanded.snapshot');
  expect(await run('create', ...data, '--out', out)).toMatchObject({
    code: 1,
    out: '',
    err: expect.stringContaining('[snapshot_not_here]'),
  });
  expect(existsSync(out)).toBe(false);
});
