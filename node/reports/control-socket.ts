/**
 * A control socket of a running node, in its data directory, that only its user can open. A client gets one JSON
 * document and is disconnected; its input is ignored.
 */
import { chmodSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { RuntimeError } from '../../runtime/runtime-error.ts';

const ASK_MILLIS = 10_000;
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

const socketPath = (dataDir: string): string => join(dataDir, 'consensus.sock');

export async function serveControl(dataDir: string, answer: () => string): Promise<() => Promise<void>> {
  const path = socketPath(dataDir);
  // Left by a crash; the directory is locked, so no other process uses it.
  rmSync(path, { force: true });
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.setTimeout(ASK_MILLIS, () => socket.destroy());
    socket.write(answer(), () => socket.destroySoon());
  });
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(path, () => resolve()));
  chmodSync(path, 0o600);
  return () => new Promise((resolve) => server.close(() => resolve()));
}

/** The document of the node that has this data directory. */
export async function askControl(dataDir: string): Promise<string> {
  const socket = connect(socketPath(dataDir));
  socket.setTimeout(ASK_MILLIS, () => socket.destroy(new Error('it does not answer')));
  const parts: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const part of socket as AsyncIterable<Buffer>) {
      bytes += part.length;
      if (bytes > MAX_ANSWER_BYTES) throw new Error('its answer does not end');
      parts.push(part);
    }
  } catch (error) {
    throw new RuntimeError(
      'node_not_asked',
      `no node that takes part in consensus runs in ${dataDir}: ${(error as Error).message}`,
    );
  } finally {
    socket.destroy();
  }
  return Buffer.concat(parts).toString('utf8');
}
