/** Keys in a terminal. Without a terminal there are none. */

export const KEYS = {
  h: 'hash rate',
  p: 'pause',
  r: 'resume',
  s: 'shares',
  c: 'connection',
  q: 'quit',
} as const;

/** What each key does, and what is done for a key that does nothing. */
export type KeyActions = Readonly<Record<keyof typeof KEYS | 'help', () => void>>;

export const keysText = (): string =>
  Object.entries(KEYS)
    .map(([key, name]) => `${key} ${name}`)
    .join(', ');

export type KeyInput = Pick<NodeJS.ReadStream, 'isTTY' | 'on' | 'off' | 'resume' | 'pause' | 'setRawMode'>;

export function listenForKeys(input: KeyInput, actions: KeyActions): () => void {
  if (!input.isTTY) return () => undefined;
  const onData = (data: Buffer | string): void => {
    const text = data.toString();
    // Arrows and the like are several characters: their letters are no keys of ours.
    if (text.startsWith('\u001b')) return;
    for (const key of text) {
      // In raw mode Ctrl-C arrives as a character.
      if (key === '\u0003') actions.q();
      else if (Object.hasOwn(KEYS, key)) actions[key as keyof typeof KEYS]();
      else if (key === '?') actions.help();
    }
  };
  input.setRawMode(true);
  input.on('data', onData);
  input.resume();
  return () => {
    input.off('data', onData);
    input.setRawMode(false);
    input.pause();
  };
}
