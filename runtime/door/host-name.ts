/**
 * Host names that a listener accepts. A web page whose name is made to resolve to this machine (DNS rebinding) has the
 * same origin as the listener, so its browser sends no Origin and lets it read the answers; but the Host header
 * contains its own name. So a public name is accepted only if the operator listed it. Addresses and local names cannot
 * be registered.
 */
import { isIP } from 'node:net';
import { parsed, repeated } from '../command-line/command-line.ts';

/** Names under these cannot be registered (RFC 2606, 6761, 6762, 8375 and the reservation of `internal`). */
const LOCAL_NAMES = /^(?:[^.]+|.+\.(?:localhost|local|internal|home\.arpa|test))$/;

/** The name of a Host header, in lower case and without its port. */
export function hostNameOf(header: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d*)?$/.exec(header)?.[1];
  if (bracketed !== undefined) return bracketed.toLowerCase();
  const name = header.replace(/:\d*$/, '').toLowerCase();
  return name.endsWith('.') ? name.slice(0, -1) : name;
}

/** Without a Host header the request is not a browser's. */
export function admitsHost(header: string | undefined, names: readonly string[]): boolean {
  if (header === undefined) return true;
  const name = hostNameOf(header);
  return isIP(name) !== 0 || LOCAL_NAMES.test(name) || names.includes(name);
}

/** Whether a page has the same origin as this listener, according to its Host header; programs send no Origin. */
export function isOwnOrigin(origin: string | undefined, host: string | undefined): boolean {
  return origin === undefined || (URL.canParse(origin) && new URL(origin).host === host);
}

/** `--host-name` of every program with such a listener. */
export const hostNameOption = (group: string) =>
  repeated(
    parsed(
      {
        help: 'further host name that clients may use, besides IP addresses and local names',
        group,
        placeholder: 'NAME',
      },
      (word) => {
        if (!/^[\w-]+(\.[\w-]+)*\.?$/.test(word)) throw new Error(`must be a name such as node.example, not '${word}'`);
        return hostNameOf(word);
      },
    ),
  );
