/** Who makes a development chain twice from the same settings, in the same millisecond, has two chains; a known one is made with its seed. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { developmentGenesis, developmentKey } from '../../node/genesis/development.ts';
import { writeDevelopmentNetwork } from '../../node/genesis/development-network.ts';
import { makeGenesis } from '../../node/genesis/make-genesis.ts';
import { openNode } from '../../node/open-node.ts';
import { formatAddress } from '../../protocol/address.ts';
import { toHex } from '../../protocol/bytes.ts';
import { chainId, encodeGenesis, type Genesis } from '../../protocol/ledger/genesis.ts';
import { readGenesis, showGenesis } from '../../protocol/ledger/genesis-file.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';
import { Bed, KNOWN_SEED, quickHash, START_MILLIS } from './bed.ts';

const identifier = (genesis: Genesis): string => toHex(chainId(encodeGenesis(genesis)));
const verifier = {
  prepare: async () => undefined,
  hash: async (_epoch: number, header: Uint8Array) => quickHash(header),
};

const settings = { timestampMillis: START_MILLIS, validators: 1 };

async function newChainOfANode(): Promise<string> {
  const stops: (() => Promise<void> | void)[] = [];
  const node = await openNode(
    { network: 'development', dataDir: temporaryDirectory(), cutMillis: 0 },
    {
      verifier,
      log: quietLog,
      now: () => START_MILLIS,
      started: (_name, stop) => void stops.push(stop),
      fault: (reason) => expect.fail(reason),
    },
  );
  for (const stop of stops.reverse()) await stop();
  return identifier(node.chain.genesis);
}

const newDocument = (network: 'development' | 'testnet') =>
  makeGenesis({
    network,
    timestampMillis: START_MILLIS,
    powEpochLength: 1_036_800,
    initialWork: 4_096n,
    minimumWork: 64n,
    intervalCuts: 34_560,
    registrations: [],
    developmentValidators: 1,
    fund: [{ address: formatAddress(developmentKey('bank').address, network), amount: 19_000_000n * 100_000_000n }],
  });

test('chains of svcd run, genesis and development-network that start in one millisecond have different identifiers', async () => {
  const makers = {
    run: newChainOfANode,
    genesis: () => identifier(newDocument('development')),
    'development-network': () => writeDevelopmentNetwork(join(temporaryDirectory(), 'network'), settings),
  };
  for (const [name, make] of Object.entries(makers)) expect(await make(), name).not.toBe(await make());
});

test('the same seed makes the same chain; the document of a network that registrations make needs none', () => {
  expect(identifier(developmentGenesis({ ...settings, seed: KNOWN_SEED }))).toBe(
    identifier(developmentGenesis({ ...settings, seed: KNOWN_SEED })),
  );
  expect(identifier(developmentGenesis({ ...settings, seed: KNOWN_SEED.with(31, 1) }))).not.toBe(
    identifier(developmentGenesis({ ...settings, seed: KNOWN_SEED })),
  );
  expect(newDocument('testnet')).toEqual(newDocument('testnet'));
});

test('a file keeps the seed, and a seed that was changed or belongs to no such version is refused', () => {
  const genesis = developmentGenesis(settings);
  const file = showGenesis(genesis);
  expect(readGenesis(file)).toEqual(genesis);
  const seed = toHex(genesis.seed!);
  expect(() => readGenesis(file.replace(seed, toHex(KNOWN_SEED)))).toThrow(/but it is/);
  expect(() => readGenesis(file.replace(seed, seed.slice(2)))).toThrow();
  expect(() => readGenesis(file.replace('"version": 3', '"version": 2'))).toThrow(/'seed' is not known/);
  expect(() => readGenesis(file.replace('"version": 3', '"version": 4'))).toThrow(/version 4/);
});

test('the directory of a chain that was made without a seed still opens', async () => {
  const { seed: _, ...genesis } = developmentGenesis(settings);
  const bed = await Bed.open({ options: { genesis } });
  await bed.seal();
  await bed.reopen();
  expect(bed.node.chain.head()).toMatchObject({ height: 1 });
  expect(bed.node.chain.genesis).toEqual(genesis);
  await bed.close();
});
