/**
 * Resolves names that validators registered, by querying the name servers directly: system lookups share a few threads
 * with disk access, and an unanswered lookup would block one.
 */
import { randomInt } from 'node:crypto';
import { Resolver } from 'node:dns';
import type { LookupFunction } from 'node:net';

const LIMITS = { timeout: 3_000, tries: 1 };

/** A name may have thousands, and Node dials one after the other. */
const MAX_ADDRESSES = 16;

/** One of the addresses that may be dialled: the owner of a name can change its address at any time. */
export function routeLookup(mayDial: (ip: string) => boolean): LookupFunction {
  const resolver = new Resolver(LIMITS);
  return (host, { all }, callback) => {
    const found = (family: 4 | 6, addresses: readonly string[]): boolean => {
      const allowed = addresses.slice(0, MAX_ADDRESSES).filter(mayDial);
      if (allowed.length === 0) return false;
      const address = allowed[randomInt(allowed.length)] as string;
      if (all === true) callback(null, [{ address, family }]);
      else callback(null, address, family);
      return true;
    };
    resolver.resolve4(host, (_, four = []) => {
      if (found(4, four)) return;
      resolver.resolve6(host, (error, six = []) => {
        if (!found(6, six)) callback(error ?? new Error('none of its addresses may be dialled'), '', 0);
      });
    });
  };
}
