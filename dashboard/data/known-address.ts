/** The address that was looked at last; only this browser knows it. */
const KEPT = 'svc-miner-address';

export function knownAddress(): string {
  try {
    return localStorage.getItem(KEPT) ?? '';
  } catch {
    return '';
  }
}

export function keepAddress(address: string): void {
  try {
    localStorage.setItem(KEPT, address);
  } catch {
    // A browser that keeps nothing still shows the miner.
  }
}
