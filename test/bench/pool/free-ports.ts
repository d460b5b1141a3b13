/** Ports that are free now, for programs that must be told theirs. */
import { createServer } from 'node:net';

export const freePorts = (count: number): Promise<number[]> =>
  Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      const { port } = server.address() as { port: number };
      await new Promise((resolve) => server.close(resolve));
      return port;
    }),
  );
