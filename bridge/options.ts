/**
 * Every limit of the stratum server and its default, in one place: the option tables of svc-bridge and svc-pool, their
 * help texts and docs/bridge.md come from here.
 */
import { availableParallelism } from 'node:os';
import { ANCHOR_POLICIES } from '../node/mining/anchor-choice.ts';
import { MAX_RIGS } from '../protocol/stratum/farm.ts';
import { readAddressRange } from '../runtime/clients/client-address.ts';
import type { BucketRate } from '../runtime/clients/token-bucket.ts';
import {
  choice,
  duration,
  integer,
  parsed,
  path,
  repeated,
  text,
  type ValuesOf,
} from '../runtime/command-line/command-line.ts';
import { roomForConnections } from '../runtime/files/open-files.ts';
import { BAN_DEFAULTS, type BanOptions } from './session/ban-score.ts';
import { JOB_LIFE_DEFAULTS, type JobLife } from './session/job-book.ts';
import { VARDIFF_DEFAULTS, type VardiffOptions } from './session/vardiff.ts';

export type StratumLimits = {
  /** Connections of the whole server, and of one address (IPv6: of one /64). */
  readonly connections: number;
  readonly connectionsPerAddress: number;
  /** New connections of one thread per second; beyond it they wait in the system's backlog or are closed. */
  readonly logins: BucketRate;
  /** Time to reach `mining`, TLS handshake and PROXY header included. */
  readonly loginMillis: number;
  /** Without a submit or ping for this long, a connection is closed. */
  readonly idleMillis: number;
  /** Bytes waiting to be read by a miner; beyond it the miner is dropped. */
  readonly queueBytes: number;
  /** A miner that has read nothing of what waits for it in this time is dropped. */
  readonly stallMillis: number;
  /** Requests of one connection other than submits. */
  readonly requests: BucketRate;
  /** Submits of one connection. */
  readonly submits: BucketRate;
  /** Rigs of one farm session (S70); 0 offers none. */
  readonly farmRigs: number;
  /** Submits of all connections of one thread: the verifier's maximum load. */
  readonly submitsOverall: BucketRate;
  /** Submits of one connection for expired jobs: hashed only because one may be a block. */
  readonly lateSubmits: BucketRate;
  /** Submits of one connection that are hashed regardless of the load by others. */
  readonly owedSubmits: BucketRate;
  /** Requests held back while one before them is being answered. */
  readonly heldRequests: number;
  /** How long, and how many, sessions are kept to be resumed. */
  readonly resumeMillis: number;
  readonly resumeSessions: number;
  /** How long a drain waits for miners to leave. */
  readonly drainMillis: number;
  readonly jobs: JobLife;
  readonly bans: BanOptions;
  readonly vardiff: VardiffOptions;
};

export const LIMIT_DEFAULTS: StratumLimits = {
  connections: 65_536,
  connectionsPerAddress: 4_096,
  logins: { perSecond: 20_000, burst: 20_000 },
  loginMillis: 15_000,
  idleMillis: 600_000,
  queueBytes: 65_536,
  stallMillis: 30_000,
  requests: { perSecond: 5, burst: 50 },
  submits: { perSecond: 100, burst: 1_000 },
  farmRigs: MAX_RIGS,
  submitsOverall: { perSecond: 100_000, burst: 50_000 },
  lateSubmits: { perSecond: 10, burst: 200 },
  owedSubmits: { perSecond: 1, burst: 10 },
  heldRequests: 32,
  resumeMillis: 120_000,
  resumeSessions: 100_000,
  drainMillis: 5_000,
  jobs: JOB_LIFE_DEFAULTS,
  bans: BAN_DEFAULTS,
  vardiff: VARDIFF_DEFAULTS,
};

/** How long miners may keep working on one template while no node serves, with a margin. */
const LONGEST_TEMPLATE_MILLIS = 90_000;

/** Nonces that a session can have had judged on jobs that are still known, at the pace it may submit. */
export const judgedLimit = ({ submits, jobs }: Pick<StratumLimits, 'submits' | 'jobs'>): number =>
  submits.burst +
  Math.ceil((submits.perSecond * (jobs.graceMillis + jobs.memoryMillis + LONGEST_TEMPLATE_MILLIS)) / 1000);

const LIMITS = 'Limits';
const SHARES = 'Jobs and shares';

const addressRange = (settings: { help: string; group: string }) =>
  parsed({ ...settings, placeholder: 'CIDR' }, readAddressRange);

const works = (settings: { help: string; default: string }) =>
  parsed({ ...settings, group: SHARES, placeholder: 'HASHES' }, (word) => {
    if (!/^[1-9]\d{0,38}$/.test(word)) throw new Error(`must be a number of hashes, not '${word}'`);
    return BigInt(word);
  });

const D = LIMIT_DEFAULTS;

/** Options common to svc-bridge and svc-pool; `limitsOf` reads them. */
export const stratumOptions = {
  threads: integer({
    help: 'listener threads; 0 serves from the main thread (default: as many as cores)',
    min: 0,
    max: 64,
  }),
  verifyThreads: integer({ help: 'threads that verify shares (default: as many as cores)', min: 1, max: 256 }),
  tlsCert: path({ help: 'certificate chain as PEM, read again when it changes', group: 'TLS', placeholder: 'FILE' }),
  tlsKey: path({ help: 'its private key as PEM', group: 'TLS', placeholder: 'FILE' }),
  wsOrigin: repeated(text({ help: 'web origin that may connect by WebSocket', placeholder: 'ORIGIN' })),
  proxyProtocol: repeated(
    addressRange({ help: 'proxies that must send a PROXY header or X-Forwarded-For', group: 'Options' }),
  ),
  secondsPerShare: integer({
    help: 'time between two shares of a connection, in seconds',
    group: SHARES,
    min: 1,
    max: 600,
    default: D.vardiff.secondsPerShare,
  }),
  startWork: works({ help: 'share work of a new connection, in hashes', default: String(D.vardiff.startWork) }),
  minWork: works({ help: 'least share work, in hashes', default: String(D.vardiff.minWork) }),
  anchors: choice(
    {
      help: 'cut that jobs build on: the newest, or one drawn among those that pay best',
      group: SHARES,
      default: 'newest',
    },
    ANCHOR_POLICIES,
  ),
  jobGrace: duration({ help: 'how long a superseded job stays valid', group: SHARES, default: '30s' }),
  maxConnections: integer({ help: 'connections in all', group: LIMITS, min: 1, default: D.connections }),
  maxPerAddress: integer({
    help: 'connections per client IP address',
    group: LIMITS,
    min: 1,
    default: D.connectionsPerAddress,
  }),
  loginTime: duration({ help: 'time a connection has to log in', group: LIMITS, default: '15s' }),
  idleTime: duration({ help: 'disconnect a miner that is silent for this long', group: LIMITS, default: '10m' }),
  drainTime: duration({ help: 'time miners get to leave when the server stops', group: LIMITS, default: '5s' }),
  submitRate: integer({
    help: 'submits per second of one connection',
    group: LIMITS,
    min: 1,
    default: D.submits.perSecond,
  }),
  farmRigs: integer({
    help: 'rigs behind one connection of a mining proxy; 0: none',
    group: LIMITS,
    min: 0,
    max: MAX_RIGS,
    default: D.farmRigs,
  }),
  verifyRate: integer({
    help: 'submits per second of a listener thread',
    group: LIMITS,
    min: 1,
    default: D.submitsOverall.perSecond,
  }),
  banScore: integer({ help: 'score at which a sender is banned', group: LIMITS, min: 1, default: D.bans.limit }),
  banTime: duration({ help: 'how long a ban lasts', group: LIMITS, default: '10m' }),
  allow: repeated(addressRange({ help: 'addresses that are never banned', group: LIMITS })),
} as const;

export type StratumValues = ValuesOf<typeof stratumOptions>;

export function limitsOf(values: StratumValues): StratumLimits {
  const burst = D.submits.burst / D.submits.perSecond;
  return {
    ...D,
    connections: Math.min(values.maxConnections, roomForConnections().miners),
    connectionsPerAddress: values.maxPerAddress,
    loginMillis: values.loginTime,
    idleMillis: values.idleTime,
    drainMillis: values.drainTime,
    submits: { perSecond: values.submitRate, burst: values.submitRate * burst },
    farmRigs: values.farmRigs,
    submitsOverall: { perSecond: values.verifyRate, burst: Math.ceil(values.verifyRate / 2) },
    jobs: { ...D.jobs, graceMillis: values.jobGrace },
    bans: { ...D.bans, limit: values.banScore, banMillis: values.banTime },
    vardiff: {
      ...D.vardiff,
      secondsPerShare: values.secondsPerShare,
      startWork: values.startWork,
      minWork: values.minWork,
    },
  };
}

export const threadsOf = (values: StratumValues): number => values.threads ?? availableParallelism();
