/** The options of `svc-wallet`: names, defaults and help in one place (docs/wallet.md, Command line). */
import { homedir } from 'node:os';
import { join } from 'node:path';
import { parseAddress } from '../../protocol/address.ts';
import { NETWORK_NAMES } from '../../protocol/network.ts';
import { readAddressRange } from '../../runtime/clients/client-address.ts';
import {
  choice,
  flag,
  integer,
  type ListenAddress,
  listenAddress,
  parsed,
  path,
  readHttpUrl,
  readListenAddress,
  repeated,
} from '../../runtime/command-line/command-line.ts';
import { hostNameOption } from '../../runtime/door/host-name.ts';
import { EVERY_INTERFACE } from '../../runtime/listen-address.ts';
import { logOptions } from '../../runtime/log/log.ts';
import { nodeIdentityOption } from '../../runtime/node-client/node-identity.ts';
import { walletPath } from '../keys/wallet-path.ts';
import { WALLET_DEFAULTS } from '../wallet.ts';

const FILES = 'Files';
const DAEMON_PORT = 28_703;

/** Where a daemon listens. */
export const daemonListen = (values: {
  readonly listen: ListenAddress | undefined;
  readonly allowRemote: boolean;
}): ListenAddress => values.listen ?? { host: values.allowRemote ? EVERY_INTERFACE : '127.0.0.1', port: DAEMON_PORT };

type FileValues = { readonly file: string | undefined };

const defaultFile = (): string => join(homedir(), '.svc', 'wallet.json');

/** Where a new wallet is written. */
export const newFile = ({ file = defaultFile() }: FileValues): string => file;
/** The wallet file that a command works with. */
export const walletFile = (values: FileValues): string => walletPath(newFile(values));

export const fileOptions = {
  file: path({ help: 'the wallet file (default: ~/.svc/wallet.json)', group: FILES }),
  passwordFile: path({ help: 'holds the password (default: FILE.password, else the terminal is asked)', group: FILES }),
} as const;

export const jsonOption = { json: flag({ help: 'print the result or the error as JSON' }) } as const;

const url = parsed(
  {
    help: 'the node to use; if it is unavailable, the wallet waits for it',
    placeholder: 'URL',
    default: 'http://127.0.0.1:28701',
  },
  readHttpUrl('http://127.0.0.1:28701'),
);

/**
 * For commands that need the wallet file alone: a tail of options that fits the other commands of a validator's owner
 * fits these too.
 */
export const unaskedNode = { service: { ...url, help: 'accepted as elsewhere; no node is asked' } } as const;

/** Options of every command that uses a running daemon, or opens the wallet itself if there is none. */
export const sessionOptions = {
  ...fileOptions,
  tokenFile: path({ help: 'bearer token of the daemon (default: FILE.token)', group: FILES }),
  rpc: listenAddress({ help: 'where a running daemon listens', default: '127.0.0.1:28703' }),
  service: url,
  nodeIdentity: nodeIdentityOption(),
  ...jsonOption,
} as const;

export const creationOptions = {
  ...fileOptions,
  network: choice({ help: 'the network of the wallet', default: 'development' }, NETWORK_NAMES),
  generatePassword: flag({ help: 'make a random password and keep it beside the wallet file' }),
  passphraseFile: path({
    help: 'a passphrase that belongs to the words (an extra secret; without it the words alone suffice)',
    group: FILES,
  }),
  ...jsonOption,
} as const;

export const daemonOptions = {
  ...fileOptions,
  tokenFile: path({ help: 'bearer token, written on the first start (default: FILE.token)', group: FILES }),
  listen: parsed(
    {
      help: 'where to listen (default: 127.0.0.1:28703, with --allow-remote every interface)',
      placeholder: 'HOST:PORT',
    },
    (word) => readListenAddress(word, DAEMON_PORT),
  ),
  allowRemote: flag({ help: 'listen beyond this machine; calls from elsewhere must come through a TLS proxy' }),
  trustedProxy: repeated(
    parsed({ help: 'TLS proxy on another machine, with --allow-remote', placeholder: 'CIDR' }, readAddressRange),
  ),
  hostName: hostNameOption('Options'),
  service: url,
  nodeIdentity: nodeIdentityOption(),
  confirmations: integer({
    help: 'cuts until the event `confirmations`',
    min: 1,
    max: 100_000,
    default: WALLET_DEFAULTS.confirmations,
  }),
  autoCompound: integer({ help: 'merge every address that holds more than N outputs', min: 1, max: 1_000_000 }),
  autoSweepTo: parsed(
    { help: 'forward every finalized payment to this (cold) address', placeholder: 'ADDRESS' },
    (word) => {
      parseAddress(word);
      return word;
    },
  ),
  validity: integer({
    help: 'cuts a transaction stays valid; after them its fate is known',
    min: 10,
    max: 100_000,
    default: WALLET_DEFAULTS.validityCuts,
  }),
  maxFeePerMass: integer({
    help: 'refuse to pay when the node asks for more atoms per mass',
    min: 1,
    max: 1_000_000_000,
    default: Number(WALLET_DEFAULTS.maxFeePerMass),
  }),
  ...logOptions,
} as const;
