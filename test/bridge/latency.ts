/** A wire with latency: everything is passed on after a while, in order, both ways. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

const pass = (from: Socket, to: Socket, millis: number): void => {
  from.on('data', (chunk) => setTimeout(() => to.destroyed || to.write(chunk), millis));
  from.on('close', () => setTimeout(() => to.destroy(), millis));
  from.on('error', () => {});
};

/** The port to connect to instead of `port`. */
export function withLatency(port: number, millisOneWay: number): Promise<number> {
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1');
    pass(near, far, millisOneWay);
    pass(far, near, millisOneWay);
  });
  onTestFinished(() => void server.close());
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)));
}
