/**
 * Whether a caller is on this machine: it comes from a loopback address, or from the very address it called. Nobody else can hold a
 * TCP connection that says so.
 */
const plain = (address: string): string => address.replace(/^::ffff:/i, '');
const isLoopback = (address: string): boolean => address === '::1' || address.startsWith('127.');

export function isSameMachine(remote: string | undefined, local: string | undefined): boolean {
  if (remote === undefined || local === undefined) return false;
  return isLoopback(plain(remote)) || plain(remote) === plain(local);
}
