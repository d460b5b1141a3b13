/** Addresses of names that validators registered. They are asked of the name servers directly: the system's own lookup shares few threads with the disk, and a name whose server never answers would hold one. */
import { Resolver } from 'node:dns';
import type { LookupFunction } from 'node:net';

const LIMITS = { timeout: 3_000, tries: 1 };

/** Of the addresses only those that may be dialled: who owns a name decides where it leads at the moment of the call. */
export function routeLookup(mayDial: (ip: string) => boolean): LookupFunction {
  const resolver = new Resolver(LIMITS);
  return (host, { all }, callback) => {
    const found = (family: 4 | 6, addresses: readonly string[]): boolean => {
      const allowed = addresses.filter(mayDial).map((address) => ({ address, family }));
      const [first] = allowed;
      if (first === undefined) return false;
      if (all === true) callback(null, allowed);
      else callback(null, first.address, family);
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
