/**
 * Whether a caller is on this machine: it comes from a loopback address, or from the same address that it called. No
 * other machine can have such a TCP connection.
 */
import { isLoopback } from './client-address.ts';

const plain = (address: string): string => address.replace(/^::ffff:/i, '');

export function isSameMachine(remote: string | undefined, local: string | undefined): boolean {
  if (remote === undefined || local === undefined) return false;
  return isLoopback(remote) || plain(remote) === plain(local);
}
