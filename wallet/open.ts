/** Opens a wallet on this machine: lock, password, state, node. Shared by the daemon and the commands. */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createApiClient } from '../protocol/api/client.ts';
import type { NetworkName } from '../protocol/network.ts';
import { steadyMillis, wallMillis } from '../runtime/clock/clock.ts';
import { type DirectoryLock, lockDirectory } from '../runtime/files/directory-lock.ts';
import type { Logger } from '../runtime/log/log.ts';
import { useNativeSha384 } from '../runtime/native/native-sha384.ts';
import { pinOf } from '../runtime/node-client/node-identity.ts';
import { nodeTransport } from '../runtime/node-client/node-transport.ts';
import type { NodeClient } from './chain/node-link.ts';
import { type Unlocked, unlock } from './keys/password.ts';
import { readWalletFile } from './keys/wallet-file.ts';
import { walletPath } from './keys/wallet-path.ts';
import { Wallet, type WalletOptions } from './wallet.ts';

/** For the file returned by `walletPath`. */
export const stateDirectory = (file: string): string => `${file}.state`;

/** Few and short attempts: the wallet's own loop retries, and a caller is waiting. */
export function nodeClient(baseUrl: string, identities: readonly string[] = []): NodeClient {
  const times = { attempts: 2, timeoutMillis: 10_000, maxWaitMillis: 3_000 };
  return createApiClient({ baseUrl, ...times, pin: pinOf(identities) }, nodeTransport());
}

export type OpenOptions = Omit<WalletOptions, 'network' | 'stateDirectory'> & {
  readonly file: string;
  readonly passwordFile: string | undefined;
  readonly service: string;
  /** Identities of trusted nodes; none means any. */
  readonly nodeIdentity?: readonly string[];
};

export type OpenDependencies = {
  readonly log: Logger;
  readonly ask: (() => Promise<string>) | undefined;
  readonly fault: (error: Error) => void;
  /** Checks the wallet before it is opened, and throws if it does not match. */
  readonly check?: (network: NetworkName) => void;
};

/** The lock comes before everything else: two processes on one state would spend the same outputs. */
export async function openWallet(options: OpenOptions, dependencies: OpenDependencies): Promise<Wallet> {
  useNativeSha384();
  const file = walletPath(options.file);
  const directory = stateDirectory(file);
  // No state is made for a missing wallet: it would conflict with the wallet that is created next.
  if (!existsSync(directory)) readWalletFile(file);
  const lock: DirectoryLock = lockDirectory(directory);
  try {
    const { secrets, network }: Unlocked = await unlock(file, options.passwordFile, dependencies.ask);
    dependencies.check?.(network);
    const wallet = await Wallet.open(
      secrets,
      { ...options, network, stateDirectory: join(directory, 'store') },
      {
        client: nodeClient(options.service, options.nodeIdentity),
        log: dependencies.log,
        now: wallMillis,
        steady: steadyMillis,
        randomBytes: (length) => new Uint8Array(randomBytes(length)),
        fault: dependencies.fault,
      },
    );
    wallet.onClosed(() => lock.release());
    return wallet;
  } catch (error) {
    lock.release();
    throw error;
  }
}
