/** Options of the peer-to-peer network: section `p2p` of the config file, and the settings derived from them. */
import { isIP } from 'node:net';
import { fromHex } from '../../protocol/bytes.ts';
import { ID_BYTES } from '../../protocol/crypto/identifier.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { choice, integer, parsed, repeated } from '../../runtime/command-line/command-line.ts';
import { type NetworkAddress, readNetworkAddress } from '../../runtime/listen-address.ts';
import type { Checkpoint } from '../chain/checkpoints.ts';
import { NetworkError } from './network-error.ts';
import { isDialable } from './peers/peer-address.ts';

const GROUP = 'Peers';
const MAX_LISTEN = 8;

export const PEER_PORTS: Readonly<Record<NetworkName, number>> = {
  mainnet: 28_705,
  testnet: 28_707,
  testnet100: 28_707,
  development: 28_705,
};

function multiaddrOf({ host, port, family, way }: NetworkAddress, standardPort: number): string {
  const kind = isIP(host) === 0 ? `dns${family ?? ''}` : `ip${isIP(host)}`;
  return `/${kind}/${host}/${way === 'quic' ? `udp/${port}/quic-v1` : `tcp/${port ?? standardPort}`}`;
}

/** `off` listens on none. */
const readListen = (word: string): NetworkAddress | 'off' => (word === 'off' ? 'off' : readNetworkAddress(word));

function readPeerAddress(word: string): string {
  if (!isDialable(word))
    throw new Error(
      'must be an address such as /ip4/192.0.2.1/tcp/28705 or /ip4/192.0.2.1/udp/28705/quic-v1, with or without /p2p/PEER',
    );
  return word;
}

function readCheckpoint(word: string): Checkpoint {
  const [, height = '', cutId = ''] = /^(\d{1,15}):(.*)$/.exec(word) ?? [];
  try {
    return { height: Number(height), cutId: fromHex(cutId, ID_BYTES) };
  } catch {
    throw new Error(`must be HEIGHT:CUT_ID, the identifier in ${2 * ID_BYTES} hex characters`);
  }
}

export const networkOptions = {
  p2p: choice(
    {
      help: 'off: no peers; validators still talk to each other',
      group: GROUP,
      default: 'on',
      configPath: 'p2p.mode',
    },
    ['on', 'off'],
  ),
  p2pListen: repeated(
    parsed(
      {
        help: 'address for peers; port 28705 (testnet 28707) of every IPv4 interface, on a development network none. A multiaddr may name QUIC: /ip4/0.0.0.0/udp/28705/quic-v1',
        group: GROUP,
        placeholder: 'HOST[:PORT]|off',
        configPath: 'p2p.listen_addrs',
      },
      readListen,
    ),
  ),
  p2pAnnounce: repeated(
    parsed(
      {
        help: 'address to announce to peers, where it differs from the listener’s',
        group: GROUP,
        placeholder: 'MULTIADDR',
        configPath: 'p2p.announce_addrs',
      },
      readPeerAddress,
    ),
  ),
  bootstrap: repeated(
    parsed(
      {
        help: 'peer to begin with; a development node with one follows it',
        group: GROUP,
        placeholder: 'MULTIADDR',
        configPath: 'p2p.bootstrap',
      },
      readPeerAddress,
    ),
  ),
  checkpoint: repeated(
    parsed(
      {
        help: 'cut that the chain must contain, besides those built into the release; a chain with a different cut at that height is refused',
        group: GROUP,
        placeholder: 'HEIGHT:CUT_ID',
        configPath: 'p2p.checkpoints',
      },
      readCheckpoint,
    ),
  ),
  maxPeers: integer({
    help: 'peers at once',
    group: GROUP,
    min: 2,
    max: 500,
    default: 50,
    configPath: 'p2p.max_peers',
  }),
} as const;

export type NetworkValues = {
  readonly network: NetworkName;
  readonly p2p: 'on' | 'off';
  readonly p2pListen: readonly (NetworkAddress | 'off')[];
  readonly p2pAnnounce: readonly string[];
  readonly bootstrap: readonly string[];
  readonly maxPeers: number;
};

export type NetworkPlan = {
  /** Multiaddrs. */
  readonly listen: readonly string[];
  readonly announce: readonly string[];
  readonly bootstrap: readonly string[];
  readonly maxPeers: number;
};

/** Undefined without peers: switched off, or a development node without configured peers that listens for none. */
export function networkPlan(values: NetworkValues): NetworkPlan | undefined {
  const { network, p2pListen, p2pAnnounce, bootstrap, maxPeers } = values;
  const isDevelopment = network === 'development';
  if (values.p2p === 'off') {
    if (bootstrap.length > 0) throw new NetworkError('p2p_config', '--bootstrap names a peer, and --p2p is off');
    return undefined;
  }
  const named = p2pListen.filter((address) => address !== 'off');
  if (named.length < p2pListen.length && named.length > 0)
    throw new NetworkError('p2p_config', '--p2p-listen is off and names an address too');
  if (named.length > MAX_LISTEN)
    throw new NetworkError('p2p_config', `at most ${MAX_LISTEN} addresses can be listened on`);
  if (isDevelopment && named.length === 0 && bootstrap.length === 0) return undefined;
  const standard = p2pListen.length > 0 || isDevelopment ? [] : [{ host: '0.0.0.0', port: undefined }];
  return {
    listen: [...named, ...standard].map((address) => multiaddrOf(address, PEER_PORTS[network])),
    announce: p2pAnnounce,
    bootstrap,
    maxPeers,
  };
}
