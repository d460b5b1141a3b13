/** Notifications of this browser, for those who asked for them, while a page of the pool is open. */

import { useRef, useState } from 'preact/hooks';
import { useLive } from '../data/hooks.ts';
import { word } from '../words/language.ts';
import { NewsGate, newsOf } from './news.ts';

const REMEMBERED = 'svc-notify-address';

function notifiedAddress(): string | undefined {
  try {
    return localStorage.getItem(REMEMBERED) ?? undefined;
  } catch {
    return undefined;
  }
}

function remember(address: string | undefined): void {
  try {
    if (address === undefined) localStorage.removeItem(REMEMBERED);
    else localStorage.setItem(REMEMBERED, address);
  } catch {
    // A browser that keeps nothing asks again next time.
  }
}

const isOffered = (): boolean => 'Notification' in globalThis;

export function useNotifications(): void {
  const gate = useRef(new NewsGate());
  useLive((frame) => {
    const address = notifiedAddress();
    if (address === undefined || !isOffered() || Notification.permission !== 'granted') return;
    const news = newsOf(frame, address);
    if (news === undefined || !gate.current.passes(news, Date.now())) return;
    try {
      new Notification(news.title, { body: news.body, tag: news.tag });
    } catch {
      // Some phones let only a service worker notify.
    }
  });
}

export function NotifyMe({ address }: { address: string }) {
  const [isOn, setOn] = useState(() => notifiedAddress() === address);
  const [refused, setRefused] = useState(false);
  if (!isOffered()) return null;
  const turn = async () => {
    const wanted = !isOn;
    const may = !wanted || (await Notification.requestPermission()) === 'granted';
    setRefused(!may);
    if (!may) return;
    remember(wanted ? address : undefined);
    setOn(wanted);
  };
  return (
    <p>
      <label class="inline">
        <input type="checkbox" checked={isOn} onChange={turn} />
        {word('notify.me')}
      </label>
      <span class="warn" role="status">
        {refused ? ` ${word('notify.blocked')}` : ''}
      </span>
    </p>
  );
}
