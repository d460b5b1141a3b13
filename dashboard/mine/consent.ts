/**
 * When the page may mine, as a pure decision: never before a person agreed, never in two tabs at once, and not while the
 * tab is hidden or the machine runs on battery, unless the person said otherwise.
 */
import { word } from '../words/language.ts';
export type Circumstances = {
  readonly wanted: boolean;
  readonly hidden: boolean;
  readonly onBattery: boolean;
  readonly otherTab: boolean;
};
export type Wishes = { readonly whenHidden: boolean; readonly onBattery: boolean };

export type Decision =
  | { readonly mine: true }
  | { readonly mine: false; readonly why: 'off' | 'other_tab' | 'hidden' | 'battery' };

export function mayMine(now: Circumstances, wishes: Wishes): Decision {
  if (!now.wanted) return { mine: false, why: 'off' };
  if (now.otherTab) return { mine: false, why: 'other_tab' };
  if (now.hidden && !wishes.whenHidden) return { mine: false, why: 'hidden' };
  if (now.onBattery && !wishes.onBattery) return { mine: false, why: 'battery' };
  return { mine: true };
}

export const whyNot = (why: 'off' | 'other_tab' | 'hidden' | 'battery'): string => word(`mine.${why}`);

type Battery = EventTarget & { readonly charging: boolean };

/** Follows the browser's state; calls back at every change. Without battery information the machine counts as plugged in. */
export function watchCircumstances(onChange: (now: Omit<Circumstances, 'wanted'>) => void): () => void {
  const now = { hidden: document.hidden, onBattery: false, otherTab: false };
  const tell = () => onChange({ ...now });
  const visibility = () => {
    now.hidden = document.hidden;
    tell();
  };
  document.addEventListener('visibilitychange', visibility);
  const navigatorWithBattery = navigator as Navigator & { getBattery?: () => Promise<Battery> };
  void navigatorWithBattery.getBattery?.().then(
    (battery) => {
      const charging = () => {
        now.onBattery = !battery.charging;
        tell();
      };
      battery.addEventListener('chargingchange', charging);
      charging();
    },
    () => undefined,
  );
  return () => document.removeEventListener('visibilitychange', visibility);
}

/** Holds a lock of the browser while this tab mines; false when another tab has it. */
export async function claimMining(): Promise<(() => void) | undefined> {
  if (!('locks' in navigator)) return () => undefined;
  return new Promise((resolve) => {
    void navigator.locks.request('svc-page-miner', { ifAvailable: true }, (lock) => {
      if (lock === null) {
        resolve(undefined);
        return;
      }
      return new Promise<void>((release) => resolve(release));
    });
  });
}
