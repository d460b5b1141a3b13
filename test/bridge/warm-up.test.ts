/** A listener thread plays logins, jobs and shares before it opens its ports, and nothing of that is seen outside. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { connectionCountMemory } from '../../bridge/connection/connection-count.ts';
import { Listener, type ListenerOptions } from '../../bridge/connection/listener.ts';
import { warmUp } from '../../bridge/connection/warm-up.ts';
import { LIMIT_DEFAULTS } from '../../bridge/options.ts';
import { connectionNumberMemory } from '../../bridge/session/extranonce.ts';
import type { Hub } from '../../bridge/threads/hub.ts';
import { startListenerThread } from '../../bridge/threads/listener-threads.ts';
import { NETWORK_NAMES, NETWORKS } from '../../protocol/network.ts';
import type { ListenAddress } from '../../runtime/command-line/command-line.ts';
import { freePort } from '../../runtime/free-port.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { withoutHashing } from '../bench/stratum/without-hashing.ts';
import { quietLog } from '../quiet-log.ts';
import { deskBed } from './desk-bed.ts';

const optionsOf = (asksSink: boolean, network = NETWORKS.development) => ({
  network,
  server: 'test/1.0',
  limits: LIMIT_DEFAULTS,
  thread: 1,
  bootId: new Uint8Array(8).fill(9),
  asksSink,
  keepsSessions: false,
  counts: connectionCountMemory(LIMIT_DEFAULTS.connections),
  ownCounts: connectionCountMemory(LIMIT_DEFAULTS.connections),
  allow: [],
  connectionNumbers: connectionNumberMemory(),
});

test.each(NETWORK_NAMES)('its logins get jobs and its shares are accepted, as on %s', async (name) => {
  for (const asksSink of [true, false]) {
    const { jobs, ...done } = await warmUp(optionsOf(asksSink, NETWORKS[name]));
    expect(done).toEqual({ logins: 64, shares: 96 });
    // How many depends on how much a slice of the fan-out brings.
    expect(jobs).toBeGreaterThan(0);
  }
});

test('it takes no connection number of the listener', async () => {
  const options = optionsOf(false);
  const before = Buffer.from(options.connectionNumbers).toString('hex');
  await warmUp(options);
  expect(Buffer.from(options.connectionNumbers).toString('hex')).toBe(before);
});

const listening = (listen: ListenAddress): ListenerOptions => ({
  services: [{ name: 'bridge', listen, pool: null, tag: 'miner' }],
  wsOrigins: [],
  proxies: [],
  sharePorts: false,
  certificate: null,
  streams: 'handles',
});

test('the ports are opened when the warm-up has ended', async () => {
  const { desk } = await deskBed();
  const listen = { host: '127.0.0.1', port: await freePort() };
  const codeOf = async (): Promise<string> => {
    const socket = connect(listen.port, listen.host);
    try {
      await once(socket, 'connect');
      return 'connected';
    } catch (error) {
      return (error as NodeJS.ErrnoException).code ?? '';
    } finally {
      socket.destroy();
    }
  };
  const seen: string[] = [];
  const listener = new Listener(listening(listen), desk, async () => void seen.push(await codeOf()));
  onTestFinished(() => listener.close());
  await listener.listen();
  seen.push(await codeOf());
  expect(seen).toEqual(['ECONNREFUSED', 'connected']);
});

test('a thread is warmed up before it listens, and has served nobody then', async () => {
  const logged: string[] = [];
  const note = (message: string): void => void logged.push(message);
  const log: Logger = { ...quietLog, error: note, warn: note, info: note, debug: note };
  const verifier = withoutHashing();
  const thread = startListenerThread(
    { desk: optionsOf(false), listener: listening({ host: '127.0.0.1', port: 0 }) },
    { hub: {} as Hub, verifier, log, onExit: note },
  );
  onTestFinished(async () => {
    await thread.close();
    await verifier.close();
  });
  await thread.listen();
  expect(logged).toEqual(['warmed up']);
  expect(await thread.figures()).toMatchObject({ connections: 0, opened: 0, closed: {}, jobsSent: 0, verifying: 0 });
});
