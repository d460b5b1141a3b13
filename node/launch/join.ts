/**
 * The side of a validator that takes part in a launch: keys that are made on its own machine and stay there, the registration that it sends, and later what the bundle
 * brings, checked. Files that exist are never replaced.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { isIP, isIPv6 } from 'node:net';
import { join, resolve } from 'node:path';
import { parseAddress } from '../../protocol/address.ts';
import { parseCoins } from '../../protocol/amount.ts';
import { toHex } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { chainId, encodeGenesis, type Genesis, registrationMessage } from '../../protocol/ledger/genesis.ts';
import { showGenesis } from '../../protocol/ledger/genesis-file.ts';
import { decodeEndpoint } from '../../protocol/staking/endpoint.ts';
import { checkCommission, checkOwner } from '../../protocol/staking/operation.ts';
import { createDurably } from '../../runtime/files/durable-file.ts';
import { makeDirectory } from '../../runtime/files/make-directory.ts';
import { PRIVATE_MODE } from '../../runtime/files/private-file.ts';
import { showListenAddress } from '../../runtime/listen-address.ts';
import { privateKeyOfSeed, rawPublicKey, signMessage } from '../ml-dsa.ts';
import { PEER_PORTS } from '../network/network-options.ts';
import { loadPeerKey } from '../network/peers/peer-key.ts';
import { NODE_DEFAULTS } from '../node-defaults.ts';
import { endpointOf, overlayKey, type RouteWord } from '../validator/overlay-key.ts';
import { type KeyPurpose, sealValidatorKey } from '../validator/validator-key.ts';
import { OVERLAY_PORTS } from '../validator/validator-options.ts';
import {
  type Bundle,
  feeAddressOf,
  type Invitation,
  type Joined,
  joiningMessage,
  readInvitation,
  readJoined,
  registrationDocument,
  showDocument,
} from './documents.ts';
import { bootstrapOf, checkBundle } from './launch.ts';
import { LaunchError } from './launch-error.ts';

const PUBLIC_MODE = 0o644;
const MAX_FEE_ATOMS = 2_000_000;

export const validatorFiles = (directory: string) => {
  const folder = resolve(directory);
  const at = (...names: string[]) => join(folder, ...names);
  return {
    invitation: at('invitation.json'),
    registration: at('registration.json'),
    genesis: at('genesis.json'),
    config: at('node.json'),
    dataDir: at('node'),
    keys: at('keys'),
    key: (purpose: KeyPurpose) => at('keys', `${purpose}.json`),
    password: (purpose: KeyPurpose) => at('keys', `${purpose}.password`),
  };
};

export type JoinWishes = {
  readonly owner: string;
  /** Default: the owner. */
  readonly rewardAddress: string | undefined;
  readonly commissionBps: number;
  readonly routes: readonly RouteWord[];
  /** Where peers reach the node; default: the host of the first route. */
  readonly peer: RouteWord | undefined;
  /** For tests: a fast password hash. */
  readonly log2N?: number;
};

async function write(path: string, text: string, mode: number): Promise<void> {
  if (!(await createDurably(path, text, mode)))
    throw new LaunchError('launch_exists', `${path} exists: nothing is replaced`);
}

/** Makes a key and seals it under a random password beside it. */
async function newKey(directory: string, purpose: KeyPurpose, { network }: Invitation, log2N: number | undefined) {
  const files = validatorFiles(directory);
  const seed = new Uint8Array(randomBytes(32));
  const password = randomBytes(16).toString('hex');
  const privateKey = privateKeyOfSeed(seed);
  await write(files.password(purpose), `${password}\n`, PRIVATE_MODE);
  await write(files.key(purpose), await sealValidatorKey(seed, purpose, network, password, log2N), PRIVATE_MODE);
  seed.fill(0);
  return { privateKey, publicKey: rawPublicKey(privateKey) };
}

/** With the identity of the peer key, so that nobody else can answer there. */
async function peerAddress(dataDir: string, { host, port }: RouteWord, standardPort: number): Promise<string> {
  const [{ generateKeyPairFromSeed }, { peerIdFromPrivateKey }] = await Promise.all([
    import('@libp2p/crypto/keys'),
    import('@libp2p/peer-id'),
  ]);
  const identity = peerIdFromPrivateKey(await generateKeyPairFromSeed('Ed25519', await loadPeerKey(dataDir)));
  const kind = isIP(host) === 0 ? 'dns' : `ip${isIP(host)}`;
  return `/${kind}/${host}/tcp/${port ?? standardPort}/p2p/${identity.toString()}`;
}

/** Refused before any file is made. */
function checkWishes({ network, bond }: Invitation, wishes: JoinWishes): void {
  try {
    checkOwner(parseAddress(wishes.owner, network).payload);
    checkOwner(parseAddress(wishes.rewardAddress ?? wishes.owner, network).payload);
    checkCommission(wishes.commissionBps);
    parseCoins(bond);
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    throw new LaunchError(error.code === 'wrong_network' ? 'launch_other' : 'launch_terms', error.message);
  }
}

export async function joinLaunch(directory: string, invitation: Invitation, wishes: JoinWishes): Promise<Joined> {
  const { network, launch } = invitation;
  const files = validatorFiles(directory);
  checkWishes(invitation, wishes);
  // Before keys are made: a route that cannot be written is refused.
  endpointOf(new Uint8Array(32), wishes.routes, OVERLAY_PORTS[network]);
  if (existsSync(directory) && readdirSync(directory).length > 0)
    throw new LaunchError(
      'launch_exists',
      existsSync(files.registration)
        ? `${directory} has joined already: send its registration.json; to join anew, name another directory with --out`
        : `${directory} is not empty: name another directory with --out`,
    );
  makeDirectory(directory, 0o700);
  mkdirSync(files.keys, { mode: 0o700 });
  const consensus = await newKey(directory, 'consensus', invitation, wishes.log2N);
  const fee = await newKey(directory, 'heartbeat-fee', invitation, wishes.log2N);
  const named = {
    network,
    publicKey: consensus.publicKey,
    principal: parseCoins(invitation.bond),
    owner: parseAddress(wishes.owner, network).payload,
    rewardAddress: parseAddress(wishes.rewardAddress ?? wishes.owner, network).payload,
    commission: wishes.commissionBps,
    endpoint: endpointOf(await overlayKey(files.dataDir), wishes.routes, OVERLAY_PORTS[network]),
  };
  const registration = { ...named, signature: signMessage(consensus.privateKey, registrationMessage(named)) };
  const [route] = wishes.routes;
  const reached = wishes.peer ?? (route && { host: route.host, port: undefined });
  const peers = reached === undefined ? [] : [await peerAddress(files.dataDir, reached, PEER_PORTS[network])];
  const feeAddress = feeAddressOf(fee.publicKey, invitation);
  const signature = signMessage(consensus.privateKey, joiningMessage(launch, registration, feeAddress, peers));
  const document = registrationDocument(launch, registration, feeAddress, peers, signature);
  await write(files.invitation, showDocument(invitation), PUBLIC_MODE);
  // Written last: where it is, all else is.
  await write(files.registration, showDocument(document), PUBLIC_MODE);
  return readJoined(invitation, showDocument(document));
}

/** Where a node listens: on every interface, with the port that others were told. */
const everyInterface = (host: string, port: number): string =>
  showListenAddress({ host: isIPv6(host) ? '::' : '0.0.0.0', port });

function peerListen(peers: readonly string[]): object {
  const [first] = peers;
  if (first === undefined) return {};
  const [, , host = '', , port = ''] = first.split('/');
  return { listen_addrs: everyInterface(host, Number(port)), announce_addrs: peers };
}

/** `svcd run --config` of a validator. Paths are absolute: a service is started in any directory. */
export function configOf(directory: string, { invitation, joined }: Bundle, own: Joined): object {
  const files = validatorFiles(directory);
  const { network, cut_millis: cutMillis } = invitation;
  const bootstrap = bootstrapOf(joined, own.validator);
  const [route] = decodeEndpoint(own.registration.endpoint).routes;
  const port = route === undefined || route.port === OVERLAY_PORTS[network] ? undefined : route.port;
  return {
    network,
    genesis: files.genesis,
    'data-dir': files.dataDir,
    ...(cutMillis !== NODE_DEFAULTS.cutMillis && { 'cut-millis': cutMillis }),
    p2p: { ...(bootstrap.length > 0 && { bootstrap }), ...peerListen(own.peers) },
    validator: {
      consensus_key_file: files.key('consensus'),
      password_file: files.password('consensus'),
      heartbeat: {
        validator_id: own.validator,
        fee_key_file: files.key('heartbeat-fee'),
        fee_key_password_file: files.password('heartbeat-fee'),
        max_fee_atoms: MAX_FEE_ATOMS,
      },
    },
    ...(port !== undefined && { validator_overlay: { listen_addrs: everyInterface('::', port) } }),
  };
}

export type Received = { readonly own: Joined; readonly genesis: Genesis; readonly chain: string };

/** Takes what the bundle brings if all of it follows from the invitation that was answered here, and what was answered is in it. */
export async function receive(directory: string, bundle: Bundle): Promise<Received> {
  const files = validatorFiles(directory);
  if (!existsSync(files.registration))
    throw new LaunchError(
      'launch_missing',
      `there is no registration in ${directory}: name the directory that svcd join made with --out`,
    );
  const invitation = readInvitation(readFileSync(files.invitation, 'utf8'));
  if (bundle.invitation.launch !== invitation.launch)
    throw new LaunchError('launch_other', 'the bundle is of another launch than the invitation that was answered here');
  const own = readJoined(invitation, readFileSync(files.registration, 'utf8'));
  if (bundle.validator !== own.validator)
    throw new LaunchError('launch_other', `the bundle is for validator ${bundle.validator}, this is ${own.validator}`);
  const found = bundle.joined.find(({ validator }) => validator === own.validator);
  // Both signatures were checked: one signature stands for one registration.
  if (found?.document.signature !== own.document.signature)
    throw new LaunchError('launch_altered', 'the bundle does not have the registration that was made here');
  const genesis = checkBundle(bundle);
  for (const [path, text] of [
    [files.genesis, showGenesis(genesis)],
    [files.config, showDocument(configOf(directory, bundle, own))],
  ] as const)
    if (!existsSync(path) || readFileSync(path, 'utf8') !== text) await write(path, text, PUBLIC_MODE);
  return { own, genesis, chain: toHex(chainId(encodeGenesis(genesis))) };
}
