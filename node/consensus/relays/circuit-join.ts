/** The connection of a validator to its relay that becomes its half of a circuit. */
import { connect, type Socket } from 'node:net';
import type { Bytes } from '../../../protocol/bytes.ts';
import type { ListenAddress } from '../../../runtime/command-line/command-line.ts';
import { BEFORE_CIRCUIT_BYTES, circuitOpening, JOINED } from '../link/frames.ts';
import { CIRCUIT } from './relay-limits.ts';

/**
 * `joined` gets the connection once the other half is connected, or undefined if it failed. Returns a function that
 * cancels it.
 */
export function joinCircuit(
  { host, port }: ListenAddress,
  token: Bytes,
  joined: (socket: Socket | undefined) => void,
): () => void {
  const socket = connect({ host, port });
  let isDone = false;
  const done = (found: Socket | undefined) => {
    if (isDone) return;
    isDone = true;
    clearTimeout(timer);
    socket.off('readable', read);
    socket.off('close', failed);
    if (found === undefined) socket.destroy();
    joined(found);
  };
  const failed = () => done(undefined);
  const timer = setTimeout(failed, CIRCUIT.joinMillis);
  const read = () => {
    // Bytes after it come from the other end, and are left for it.
    const before: Buffer | null = socket.read(BEFORE_CIRCUIT_BYTES);
    if (before === null) return;
    const isJoined = before.length === BEFORE_CIRCUIT_BYTES && before.subarray(-JOINED.length).equals(JOINED);
    done(isJoined ? socket : undefined);
  };
  socket.on('error', () => undefined);
  socket.once('close', failed);
  socket.on('readable', read);
  socket.once('connect', () => void socket.write(circuitOpening(token)));
  return failed;
}
