/**
 * The wallet inside the pool's process, for a pool on one machine: the same daemon on a loopback port, reached by the same
 * JSON-RPC as every daemon. Created at the first start; its password and token are files beside it, readable by the owner only.
 */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { NetworkName } from '../../protocol/network.ts';
import { writeDurably } from '../../runtime/files/durable-file.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { ENTROPY_BYTES } from '../../wallet/keys/phrase.ts';
import { sealWalletFile, writeWalletFile } from '../../wallet/keys/wallet-file.ts';
import { openWallet } from '../../wallet/open.ts';
import { WalletServer } from '../../wallet/rpc/server.ts';
import { readOrCreateToken } from '../../wallet/rpc/token.ts';
import { WALLET_DEFAULTS } from '../../wallet/wallet.ts';

const PRIVATE_MODE = 0o600;

export type EmbeddedWallet = { readonly url: string; readonly tokenFile: string; close(): Promise<void> };

export async function startEmbeddedWallet(
  options: {
    readonly directory: string;
    readonly network: NetworkName;
    readonly nodeApi: string;
    readonly nodeIdentity: readonly string[];
  },
  dependencies: { readonly log: Logger; readonly fault: (error: Error) => void },
): Promise<EmbeddedWallet> {
  const { directory, network, nodeApi } = options;
  const file = join(directory, 'wallet.json');
  await mkdir(directory, { recursive: true, mode: 0o700 });
  if (!existsSync(file)) {
    const password = randomBytes(24).toString('base64url');
    await writeDurably(`${file}.password`, `${password}\n`, PRIVATE_MODE);
    const entropy = new Uint8Array(randomBytes(ENTROPY_BYTES));
    await writeWalletFile(file, await sealWalletFile({ entropy, passphrase: '' }, network, password));
    dependencies.log.warn('a wallet was made for the pool: back up its file and password', { file });
  }
  const wallet = await openWallet(
    {
      file,
      passwordFile: undefined,
      service: nodeApi,
      nodeIdentity: options.nodeIdentity,
      confirmations: WALLET_DEFAULTS.confirmations,
      validityCuts: WALLET_DEFAULTS.validityCuts,
      maxFeePerMass: WALLET_DEFAULTS.maxFeePerMass,
    },
    { log: dependencies.log, ask: undefined, fault: dependencies.fault },
  );
  const tokenFile = `${file}.token`;
  const listen = { host: '127.0.0.1', port: 0 };
  const server = new WalletServer(wallet, { listen, allowRemote: false, token: await readOrCreateToken(tokenFile) });
  const address = await server.start();
  wallet.start();
  return {
    url: `http://127.0.0.1:${address.port}`,
    tokenFile,
    async close() {
      await server.close();
      await wallet.close();
    },
  };
}
