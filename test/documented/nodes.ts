/** docs/node.md: a chain of one's own, one with coins, one of registered validators, and a network to try a validator on. */
import { existsSync } from 'node:fs';
import { expect } from 'vitest';
import { addressIn, json, serves } from './asking.ts';
import type { Reader, Readers } from './reader.ts';

/** Starts, makes cuts, ends with Ctrl-C; old blocks are deleted, and the index is made again. */
export async function ownChain(readers: Readers, anna: Reader): Promise<void> {
  const node = anna.starts('bin/svcd run --data-dir .data/node');
  await serves(readers, node);
  expect(await json(`${readers.url(28_701)}/v1/node/status`)).toMatchObject({ network: 'development' });
  expect(await anna.runs('curl http://127.0.0.1:28702/v1/node/identity')).toMatch(/[0-9a-f]{96}/);
  await node.stop();
  await anna.runs('svcd prune --data-dir .data/node --keep-cuts 34560');
  await anna.runs('svcd rebuild-index', { more: '--data-dir .data/node' });
  // A stopped node has a snapshot to give only where its newest cut is a 96th, from 191 on.
  const refused = await anna.ends('svcd snapshot create --out FILE', 1, {
    names: { FILE: 'snapshot' },
    more: '--data-dir .data/node',
  });
  expect(refused).toMatch(/191|96/);
}

/** Two operators register, one of them makes the genesis; a node without their keys makes no cuts. */
export async function registeredValidators(operators: readonly [Reader, Reader]): Promise<void> {
  const [first, second] = operators;
  for (const [i, operator] of operators.entries()) {
    await operator.runs('svc-wallet init --network mainnet --generate-password', { names: { mainnet: 'testnet' } });
    const endpoint = await operator.runs(
      'svcd validator-endpoint --data-dir /var/lib/svc/node --route validator.example.org',
      { names: { '/var/lib/svc/node': '.data/testnet' }, more: '--network testnet' },
    );
    await operator.runs(
      'svc-wallet validator-genesis-registration --registration-file FILE --amount COINS --overlay-endpoint-hex HEX',
      {
        names: { FILE: first.path(i === 0 ? 'a.json' : 'b.json'), COINS: '500000', HEX: endpoint.trim() },
      },
    );
  }
  const address = addressIn(await second.runs('svc-wallet new-address'));
  await first.runs(
    'svcd genesis --network testnet --validator a.json --validator b.json --fund tsvc1...=19000000 --out genesis.json',
    { names: { 'tsvc1...': address } },
  );
  const node = first.starts('svcd run --network testnet --genesis genesis.json --data-dir .data/testnet');
  await node.until(/no cuts are made: the keys of the committee are elsewhere/);
  await node.stop();
}

/** What `npm start -- --validators 4` starts from. */
export async function filesOfFour(anna: Reader): Promise<void> {
  await anna.runs('svcd development-network --out DIR --validators 4', { names: { DIR: '.data/four' } });
  const files = ['genesis.json', 'validator-0.key.json', 'validator-0.fee.json', 'validator-0.json'];
  for (const name of files) expect(existsSync(anna.path(`.data/four/${name}`)), name).toBe(true);
}

/** The network of one validator that docs/validator.md is tried on. */
export async function tryNetwork(readers: Readers, anna: Reader, address: string): Promise<void> {
  await anna.runs(
    'svcd development-network --out .data/try --validators 1 --interval-cuts 120 --initial-work 256 --fund ADDRESS=1000000',
    { names: { ADDRESS: address } },
  );
  const node = anna.starts(
    'svcd run --config .data/try/validator-0.json --data-dir .data/first --cut-millis 1000 --overlay-listen 127.0.0.1:28704 --p2p-listen 127.0.0.1:28705',
  );
  await serves(readers, node);
  expect(await anna.runs('svcd consensus dump', { more: '--data-dir .data/first' })).toContain('height');
  await node.stop();
}
