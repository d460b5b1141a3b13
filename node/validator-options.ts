/** Options of a validator and of a node that follows validators: sections `validator` and `validator_overlay` of the config file (specification: Validator configuration). */
import { isIP } from 'node:net';
import type { NetworkName } from '../protocol/network.ts';
import { type ListenAddress, parsed, path, readListenAddress, repeated } from '../runtime/command-line/command-line.ts';
import { ValidatorError } from './validator-key.ts';

const VALIDATOR = 'Validator';
const MAX_ADDRESSES = 8;

/** An address to listen on; without a port it is the network's. */
export type OverlayAddress = { readonly host: string; readonly port: number | undefined };

/** An IP, IP:PORT, or a multiaddr of TCP. */
export function readOverlayAddress(word: string): OverlayAddress {
  const multiaddr = /^\/ip[46]\/([0-9a-fA-F:.]+)\/tcp\/(\d{1,5})$/.exec(word);
  if (multiaddr !== null) return { host: multiaddr[1] as string, port: Number(multiaddr[2]) };
  if (isIP(word) !== 0) return { host: word, port: undefined };
  return readListenAddress(word);
}

export const validatorOptions = {
  consensusKeyFile: path({
    help: 'encrypted consensus key; without one a node with neighbours follows',
    group: VALIDATOR,
    placeholder: 'FILE',
    configPath: 'validator.consensus_key_file',
  }),
  consensusPasswordFile: path({
    help: 'its password',
    group: VALIDATOR,
    placeholder: 'FILE',
    configPath: 'validator.password_file',
  }),
  overlayListen: repeated(
    parsed(
      {
        help: 'address for other nodes; a validator listens on port 28704 (testnet 28709) of every interface',
        group: VALIDATOR,
        placeholder: 'IP[:PORT]',
        configPath: 'validator_overlay.listen_addrs',
      },
      readOverlayAddress,
    ),
  ),
  neighbour: repeated(
    parsed(
      {
        help: 'overlay of another node, which this one connects to',
        group: VALIDATOR,
        placeholder: 'HOST:PORT',
        configPath: 'validator_overlay.neighbours',
      },
      readListenAddress,
    ),
  ),
} as const;

export type ValidatorValues = {
  readonly network: NetworkName;
  readonly powMode: 'full' | 'light';
  readonly consensusKeyFile: string | undefined;
  readonly consensusPasswordFile: string | undefined;
  readonly overlayListen: readonly OverlayAddress[];
  readonly neighbour: readonly ListenAddress[];
};

export type ValidatorPlan = {
  readonly files: { readonly keyFile: string; readonly passwordFile: string } | undefined;
  readonly binds: readonly ListenAddress[];
  readonly neighbours: readonly ListenAddress[];
};

const OVERLAY_PORTS: Readonly<Record<NetworkName, number>> = {
  mainnet: 28_704,
  testnet: 28_709,
  testnet100: 28_709,
  development: 28_704,
};

/** What the options ask for; undefined where cuts are made inside this node, as on a development network of one node. */
export function validatorPlan(values: ValidatorValues): ValidatorPlan | undefined {
  const { consensusKeyFile: keyFile, consensusPasswordFile: passwordFile, overlayListen, neighbour } = values;
  if ((keyFile === undefined) !== (passwordFile === undefined))
    throw new ValidatorError(
      'validator_config',
      'a consensus key needs its password file, and a password file its key',
    );
  if (overlayListen.length > MAX_ADDRESSES)
    throw new ValidatorError('validator_config', `at most ${MAX_ADDRESSES} overlay addresses can be listened on`);
  const isSeparate = keyFile !== undefined || overlayListen.length > 0 || neighbour.length > 0;
  if (!isSeparate) return undefined;
  if (keyFile !== undefined && values.powMode === 'light')
    throw new ValidatorError(
      'validator_pow_light',
      'a validator needs the full dataset: run it without --pow-mode light',
    );
  const port = OVERLAY_PORTS[values.network];
  const wanted = overlayListen.length === 0 && keyFile !== undefined ? [{ host: '0.0.0.0', port }] : overlayListen;
  return {
    files: keyFile === undefined || passwordFile === undefined ? undefined : { keyFile, passwordFile },
    binds: wanted.map((address) => ({ host: address.host, port: address.port ?? port })),
    neighbours: neighbour,
  };
}
