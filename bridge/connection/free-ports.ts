/**
 * Listener threads share their ports (`reusePort`), but the system would also share them with another program of the
 * same user, and each would serve half of the miners. So every port is first bound once without sharing, and released.
 */
import type { ListenAddress } from '../../runtime/command-line/command-line.ts';
import { tryPort } from '../../runtime/free-port.ts';
import { listenError } from '../../runtime/runtime-error.ts';
import { type StratumService, tcpPortsOf } from '../service.ts';

export async function insistFreePorts(services: readonly StratumService[]): Promise<void> {
  for (const service of services)
    for (const address of [...tcpPortsOf(service).map(({ listen }) => listen), service.listenWs])
      if (address !== undefined && address.port !== 0) await insistFree(address);
}

async function insistFree(address: ListenAddress): Promise<void> {
  const error = await tryPort(address);
  if (error !== undefined) throw listenError('miners', address, error);
}
