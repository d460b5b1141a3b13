/** Keys in a terminal: h hash rate, p pause, r resume, q quit. Without a terminal there are none. */

export type KeyActions = { hashRate(): void; pause(): void; resume(): void; quit(): void };

export type KeyInput = Pick<NodeJS.ReadStream, 'isTTY' | 'on' | 'off' | 'resume' | 'pause' | 'setRawMode'>;

export function listenForKeys(input: KeyInput, actions: KeyActions): () => void {
  if (!input.isTTY) return () => undefined;
  const onData = (data: Buffer | string): void => {
    for (const key of data.toString()) {
      if (key === 'h') actions.hashRate();
      else if (key === 'p') actions.pause();
      else if (key === 'r') actions.resume();
      // In raw mode Ctrl-C arrives as a character.
      else if (key === 'q' || key === '\u0003') actions.quit();
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
