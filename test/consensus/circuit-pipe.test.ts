/** The bytes of a circuit at its relay, over real sockets. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { Allowance } from '../../node/consensus/link/allowance.ts';
import { CircuitPipe } from '../../node/consensus/relays/circuit-pipe.ts';
import { CIRCUIT } from '../../node/consensus/relays/relay-limits.ts';

test('what an end has not read is gone when the circuit ends: the kernel keeps nothing of it', async () => {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const end = async (): Promise<[Socket, Socket]> => {
    const far = connect((server.address() as AddressInfo).port, '127.0.0.1');
    const [near] = (await once(server, 'connection')) as [Socket];
    return [near, far];
  };
  const [[one, speaker], [other, sleeper]] = [await end(), await end()];
  try {
    const ended = new Promise<void>((resolve) => {
      new CircuitPipe([one, other], new Allowance(CIRCUIT.together, 0), () => 0, resolve);
    });
    speaker.on('error', () => undefined);
    speaker.write(new Uint8Array(65_536));
    speaker.end();
    await ended;
    sleeper.resume();
    const [error] = (await once(sleeper, 'close').then(
      () => [undefined],
      (failed) => [failed],
    )) as [{ code?: string } | undefined];
    expect(error?.code).toBe('ECONNRESET');
  } finally {
    for (const socket of [speaker, sleeper]) socket.destroy();
    server.close();
  }
});
