/** The wallet that holds the pool's money: the daemon that the options name, or one inside this process. */
import { join } from 'node:path';
import { privateText, readPrivateFile } from '../../runtime/files/private-file.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { PoolValues } from '../options.ts';
import { PoolError } from '../pool-error.ts';

export type WalletLink = { readonly url: string; readonly tokenFile: string };

export type WalletLinkValues = Pick<PoolValues, 'wallet' | 'walletTokenFile' | 'dataDir' | 'network'> &
  Partial<Pick<PoolValues, 'node' | 'nodeIdentity'>>;

export type WalletLinkDependencies = {
  readonly log: Logger;
  readonly started: (name: string, stop: () => void | Promise<void>) => void;
  readonly fault: (reason: string) => void;
};

export async function openWalletLink(
  values: WalletLinkValues,
  nodeApi: string,
  { log, started, fault }: WalletLinkDependencies,
): Promise<WalletLink> {
  if (values.wallet !== undefined) {
    if (values.walletTokenFile === undefined)
      throw new PoolError('options_disagree', '--wallet needs --wallet-token-file');
    // If the wallet has not created the token file yet, the pool waits for it; a file that others can read is refused.
    if (readPrivateFile(values.walletTokenFile).kind !== 'missing')
      privateText(values.walletTokenFile, '--wallet-token-file');
    return { url: values.wallet, tokenFile: values.walletTokenFile };
  }
  const { startEmbeddedWallet } = await import('./embedded-wallet.ts');
  const wallet = await startEmbeddedWallet(
    {
      directory: join(values.dataDir, 'wallet'),
      network: values.network,
      nodeApi,
      // An embedded node creates its own identity.
      nodeIdentity: (values.node ?? []).length === 0 ? [] : (values.nodeIdentity ?? []),
    },
    { log: log.child('wallet'), fault: (error) => fault(`the wallet's state cannot be written: ${error.message}`) },
  );
  started('wallet', () => wallet.close());
  return wallet;
}
