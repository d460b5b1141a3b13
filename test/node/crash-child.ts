/**
 * The process that crash.slow.test.ts kills: a node that makes cuts, mines and pays without pause, and says on standard output what is final.
 * Words: store directory, seed, and cuts of an interval: with short ones it delegates too.
 */

import { certifyWith } from '../../node/chain/certificate.ts';
import type { UnspentOutput } from '../../node/full-node.ts';
import { developmentGenesis, developmentKey, TREASURY, validatorName } from '../../node/genesis/development.ts';
import { createNode } from '../../node/node.ts';
import { genesisOutpoint } from '../../protocol/ledger/genesis.ts';
import { INTERVAL_CUTS } from '../../protocol/network.ts';
import { validatorId } from '../../protocol/staking/names.ts';
import type { Output } from '../../protocol/transactions/transaction.ts';
import { randomOf } from '../random.ts';
import { operationTransaction } from '../staking/signed.ts';
import { developmentKeys, KNOWN_SEED, payment, quickHash, START_MILLIS, searchNonce, silentLog } from './bed.ts';

const [storeDirectory = '', seed = '1', interval = `${INTERVAL_CUTS}`] = process.argv.slice(2);
const intervalCuts = Number(interval);
const random = randomOf(Number(seed));
const node = await createNode(
  {
    storeDirectory,
    genesis: developmentGenesis({
      timestampMillis: START_MILLIS,
      seed: KNOWN_SEED,
      initialWork: 1n,
      minimumWork: 1n,
      validators: 1,
      intervalCuts,
    }),
    cutMillis: 20,
    signatureThreads: 1,
  },
  {
    verifier: { prepare: async () => undefined, hash: async (_, header) => quickHash(header) },
    certify: certifyWith(developmentKeys(1)),
    now: Date.now,
    random,
    log: silentLog,
  },
);
node.on('fault', (error) => {
  process.stdout.write(`fault ${error.message.replaceAll('\n', ' ')}\n`);
  process.exitCode = 7;
  void node.close().then(() => process.exit(7));
});

const treasury = developmentKey(TREASURY).address;
const purse = new Map<string, UnspentOutput>();
node.chain.genesis.outputs.forEach((output: Output, i) => {
  const unspent: UnspentOutput = { outpoint: genesisOutpoint(node.chain.chainId, i), ...output, source: 'genesis' };
  if (node.chain.output(unspent.outpoint) !== undefined)
    purse.set(Buffer.from(unspent.outpoint.transactionId).toString('hex'), unspent);
});
node.on('cut', (effects) => {
  for (const { outpoint } of effects.spent) purse.delete(Buffer.from(outpoint.transactionId).toString('hex'));
  for (const output of effects.created)
    if (Buffer.compare(output.address, treasury) === 0)
      purse.set(Buffer.from(output.outpoint.transactionId).toString('hex'), output);
  const blocks = effects.registered.map(({ id }) => Buffer.from(id).toString('hex')).join(',');
  process.stdout.write(`cut ${effects.header.height} ${Buffer.from(effects.cutId).toString('hex')} ${blocks}\n`);
});
process.stdout.write('open\n');

const key = developmentKey(TREASURY);
const validator = validatorId(developmentKey(validatorName(0)).publicKey);
const delegation = (spend: UnspentOutput) =>
  operationTransaction(
    node.chain,
    { key, spend },
    { name: 'bond', validator, owner: treasury, rewardAddress: treasury, amount: 10_000_000_000n },
    { signer: key },
  );

const payout = developmentKey('alice').address;
for (;;) {
  const unspent = [...purse.values()].find(({ outpoint }) => node.mempool.spender(outpoint) === undefined);
  if (unspent !== undefined && node.mempool.count < 8)
    await node.submitTransaction(
      intervalCuts < INTERVAL_CUTS && random(2) === 0
        ? delegation(unspent)
        : payment(node.chain, [unspent], [{ address: payout, amount: 1n }]),
    );
  // A fault closes the store, from which templates are made.
  if (process.exitCode !== undefined) break;
  const template = node.template({ payout, maxTransactions: 20, draw: random(1_000_000) });
  const block = await node.submitBlock(searchNonce(template.header, template.target), template.body);
  if (block.status === 'accepted') process.stdout.write(`block ${Buffer.from(block.id).toString('hex')}\n`);
  await new Promise((resolve) => setTimeout(resolve, random(6)));
}
