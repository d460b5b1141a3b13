/** Consensus put together for a node: key, log, network and driver. Without a key the node follows. */
import { join } from 'node:path';
import { toHex } from '../protocol/bytes.ts';
import { validatorId } from '../protocol/staking/names.ts';
import { steadyMillis } from '../runtime/clock.ts';
import { type ListenAddress, showListenAddress } from '../runtime/command-line/command-line.ts';
import type { Logger } from '../runtime/log.ts';
import { ConsensusDriver } from './consensus/driver.ts';
import { ConsensusLog } from './consensus/log-file.ts';
import { TcpTransport } from './consensus/tcp-transport.ts';
import type { ConsensusNode } from './node.ts';
import type { ValidatorKey } from './validator-key.ts';

export type ConsensusSettings = {
  readonly dataDir: string;
  readonly cutMillis: number;
  readonly key?: ValidatorKey | undefined;
  readonly binds: readonly ListenAddress[];
  readonly neighbours: readonly ListenAddress[];
};

export type ConsensusDependencies = {
  readonly node: ConsensusNode;
  readonly log: Logger;
  now(): number;
  readonly started: (name: string, stop: () => Promise<void> | void) => void;
};

/** A log belongs to one key: a rotated key begins another. */
const logDirectory = (dataDir: string, id: Uint8Array): string => join(dataDir, 'consensus', toHex(id).slice(0, 32));

export async function openConsensus(
  { dataDir, cutMillis, key, binds, neighbours }: ConsensusSettings,
  { node, log, now, started }: ConsensusDependencies,
): Promise<ConsensusDriver> {
  const { chainId } = node;
  const id = key && validatorId(key.publicKey);
  const opened = id && (await ConsensusLog.open(logDirectory(dataDir, id), { chainId, validatorId: id }));
  const transport = new TcpTransport(
    { chainId, neighbours, binds },
    { log: log.child('overlay'), steady: steadyMillis },
  );
  for (const address of await transport.listen())
    log.info('validator overlay', { address: showListenAddress(address) });
  const driver = new ConsensusDriver(cutMillis, {
    node,
    transport,
    ...(key && opened && { signer: { publicKey: key.publicKey, privateKey: key.privateKey, ...opened } }),
    log: log.child('consensus'),
    now,
    steady: steadyMillis,
  });
  started('consensus', () => driver.close());
  driver.start();
  log.info(id === undefined ? 'following the validators' : 'validator', {
    ...(id && { validator: id, member: driver.state.self >= 0 }),
    height: driver.state.height,
    neighbours: neighbours.length,
  });
  return driver;
}
