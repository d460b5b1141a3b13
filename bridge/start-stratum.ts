/**
 * Starts a stratum server with its parts: certificate and its renewal, templates of the nodes, listeners. Used by
 * svc-bridge and svc-pool.
 */
import { join } from 'node:path';
import { createVerifier, type Verifier, type VerifierMode } from '../kernels/verifier.ts';
import type { Bytes } from '../protocol/bytes.ts';
import { NETWORKS, type NetworkName } from '../protocol/network.ts';
import { laterMillis } from '../runtime/clock/clock.ts';
import { lockDirectory } from '../runtime/files/directory-lock.ts';
import type { Logger } from '../runtime/log/log.ts';
import { BridgeError } from './bridge-error.ts';
import { type CertificateFiles, readCertificate, warnOfExpiry, watchCertificate } from './connection/certificate.ts';
import { type NodeSource, NodeUpstream, UPSTREAM_DEFAULTS } from './nodes/upstream.ts';
import { limitsOf, type StratumValues, threadsOf } from './options.ts';
import { createStratumServer } from './server.ts';
import type { StratumService } from './service.ts';
import type { StratumServer, StratumServerDependencies } from './stratum-server.ts';

type Started = (name: string, stop: () => Promise<void> | void) => void;

export type StratumOptions = {
  readonly network: NetworkName;
  /** The server name sent to miners. */
  readonly server: string;
  readonly services: readonly StratumService[];
  readonly values: StratumValues;
  readonly dataDir: string;
  readonly bootId?: Bytes;
};

export type StratumDependencies = Pick<StratumServerDependencies, 'sink' | 'verifier' | 'sessions' | 'onBan'> & {
  readonly sources: readonly NodeSource[];
  readonly log: Logger;
  readonly started: Started;
};

export async function startStratum(
  { network, server: name, services, values, dataDir, bootId }: StratumOptions,
  { sources, log, started, ...dependencies }: StratumDependencies,
): Promise<StratumServer> {
  const files = certificateFiles(values);
  const certificate = files === null ? null : readCertificate(files);
  if (certificate !== null) warnOfExpiry(certificate, log, Date.now());
  const upstream = new NodeUpstream(
    { network: NETWORKS[network], ...UPSTREAM_DEFAULTS, anchors: values.anchors },
    { sources, now: laterMillis, log: log.child('upstream') },
  );
  const sessionsDirectory = ownSessions(join(dataDir, 'sessions'), { log, started });
  const server = await createStratumServer(
    {
      network: NETWORKS[network],
      server: name,
      services,
      ...listenerOptions(values),
      certificate,
      ...(bootId === undefined ? {} : { bootId }),
      ...(sessionsDirectory === undefined ? {} : { sessionsDirectory }),
    },
    { upstream, log: log.child('stratum'), ...dependencies },
  );
  started('stratum server', async () => {
    await server.drain();
    await server.close();
  });
  for (const { service, kind, host, port } of server.addresses)
    log.info('stratum listener', { service, kind, host, port, tls: certificate !== null });
  if (files !== null && certificate !== null)
    started(
      'certificate',
      watchCertificate(files, certificate, log, (news) => server.setCertificate(news)),
    );
  return server;
}

/** What the options say of listeners and their limits. */
export const listenerOptions = (values: StratumValues) => ({
  threads: threadsOf(values),
  limits: limitsOf(values),
  wsOrigins: values.wsOrigin,
  proxies: values.proxyProtocol,
  allow: values.allow,
});

/** Two bridges may share a data directory, but not their sessions: the second one keeps none. */
function ownSessions(directory: string, { log, started }: Pick<StratumDependencies, 'log' | 'started'>) {
  try {
    const lock = lockDirectory(directory);
    started('lock of the sessions', () => lock.release());
    return directory;
  } catch (error) {
    log.warn('sessions cannot be kept for a restart', { error });
    return undefined;
  }
}

/** Read before anything else starts: a wrong certificate must not end a program that has just opened its chain. */
export function checkCertificate(values: Pick<StratumValues, 'tlsCert' | 'tlsKey'>): void {
  const files = certificateFiles(values);
  if (files !== null) readCertificate(files);
}

export function certificateFiles({
  tlsCert: cert,
  tlsKey: key,
}: Pick<StratumValues, 'tlsCert' | 'tlsKey'>): CertificateFiles | null {
  if ((cert === undefined) !== (key === undefined))
    throw new BridgeError(
      'options_disagree',
      cert === undefined ? '--tls-key needs --tls-cert as well' : '--tls-cert needs --tls-key as well',
    );
  return cert === undefined || key === undefined ? null : { cert, key };
}

export type VerifierValues = Pick<StratumValues, 'verifyThreads'> & {
  readonly network: NetworkName;
  readonly powMode: VerifierMode;
  readonly dataDir: string;
};

/** The one verifier of a process: shares and the blocks of an embedded node are checked with the same dataset. */
export function openVerifier(values: VerifierValues, { log, started }: { log: Logger; started: Started }): Verifier {
  const verifier = createVerifier(
    {
      network: NETWORKS[values.network],
      mode: values.powMode,
      dataDir: join(values.dataDir, 'datasets'),
      ...(values.verifyThreads === undefined ? {} : { threads: values.verifyThreads }),
    },
    { log: (message, fields) => log.child('pow').info(message, fields) },
  );
  started('verifier', () => verifier.close());
  return verifier;
}
