/** The miner's external dependencies: sockets, devices, timers. */
import type { Backend, BackendEvents } from '../kernels/backend.ts';
import { createVerifier } from '../kernels/verifier.ts';
import type { Fetch } from '../protocol/api/client-calls.ts';
import { NETWORKS, type NetworkName } from '../protocol/network.ts';
import type { Logger } from '../runtime/log/log.ts';
import { systemClock } from './client/pool-client.ts';
import type { Connect } from './client/transport.ts';
import { connectFromNode, fetchFromNode, type TlsOptions } from './client/transport-node.ts';
import type { ListedDevice } from './devices/device-list.ts';
import { type OpenDependencies, type OpenSettings, openDevice } from './devices/open-device.ts';
import { Sensors } from './devices/sensors.ts';
import type { HitChecker } from './work/crew.ts';

export type Checker = HitChecker & { close(): Promise<void> };

export type MinerParts = {
  readonly connect: (tls: TlsOptions) => Connect;
  readonly fetch: (tls: TlsOptions) => Fetch;
  readonly openDevice: (
    device: ListedDevice,
    settings: OpenSettings,
    dependencies: OpenDependencies,
    events: BackendEvents,
  ) => Promise<Backend>;
  readonly makeChecker: (network: NetworkName, log: Logger) => Checker;
  readonly random: () => number;
  readonly every: (millis: number, act: () => void) => () => void;
  readonly after: (millis: number, act: () => void) => void;
  readonly sensors: Pick<Sensors, 'start' | 'stop' | 'of'>;
};

export const realParts = (): MinerParts => ({
  connect: connectFromNode,
  fetch: fetchFromNode,
  openDevice,
  makeChecker: (network, log) =>
    createVerifier(
      { network: NETWORKS[network], mode: 'light', threads: 1 },
      { log: (message, fields) => log.warn(message, fields) },
    ),
  random: systemClock.random,
  every: systemClock.every,
  after: (millis, act) => void setTimeout(act, millis).unref(),
  sensors: new Sensors(),
});
