/**
 * The built page served by the pool's own code for files and headers, without a pool behind it: for tests whose API answers
 * are made up, such as ten thousand miners. The API answers with what the test gives, else with `unavailable`.
 */
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { onTestFinished } from 'vitest';
import { WebSocketServer } from 'ws';
import type { LiveFrame } from '../../pool/api/documents.ts';
import { loadStaticFiles, PAGE_HEADERS } from '../../pool/api/public/static-files.ts';

export const BUILT_PAGE = join(import.meta.dirname, '../../build/dashboard');

/** The handshake, and all that follows it. */
function passOn(request: IncomingMessage, socket: Duplex, head: Buffer, port: number): void {
  const onward = connect(port, '127.0.0.1', () => {
    const lines = request.rawHeaders.flatMap((name, i) =>
      i % 2 === 0 ? [`${name}: ${request.rawHeaders[i + 1]}`] : [],
    );
    onward.write(`GET / HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
    onward.write(head);
    onward.pipe(socket).pipe(onward);
  });
  onward.on('error', () => socket.destroy());
  socket.on('error', () => onward.destroy());
}

export type Answers = (path: string, query: URLSearchParams, method?: string) => object | undefined;

type More = {
  /** Where a stratum server takes the WebSockets of the page's miner. */
  readonly stratumPort?: number;
};

export async function servePage(answers: Answers, greeting?: LiveFrame, { stratumPort }: More = {}): Promise<string> {
  const files = await loadStaticFiles(BUILT_PAGE);
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://page');
    if (!url.pathname.startsWith('/api/v1/')) {
      const file = files.get(url.pathname);
      if (file === undefined) response.writeHead(404).end();
      else response.writeHead(200, { ...PAGE_HEADERS, 'content-type': file.type }).end(file.body);
      return;
    }
    const answer = answers(url.pathname.slice('/api/v1/'.length), url.searchParams, request.method);
    const refusal = { api_version: 1, error: { code: 'unavailable', message: 'figures are being gathered' } };
    response
      .writeHead(answer === undefined ? 503 : 'error' in answer ? 404 : 200, { 'content-type': 'application/json' })
      .end(JSON.stringify(answer ?? refusal));
  });
  const sockets = new WebSocketServer({ noServer: true });
  server.on('upgrade', (request, socket, head) => {
    if (request.url === '/api/v1/live')
      sockets.handleUpgrade(request, socket, head, (opened) => sockets.emit('connection', opened, request));
    else if (stratumPort !== undefined && request.url?.startsWith('/stratum/'))
      passOn(request, socket, head, stratumPort);
    else socket.end('HTTP/1.1 404 Not Found\r\n\r\n');
  });
  sockets.on('connection', (socket) => {
    if (greeting === undefined) return;
    // Again and again, as the pool sends its figures: a page that is still being drawn misses the first.
    const send = () => socket.send(JSON.stringify(greeting));
    send();
    const timer = setInterval(send, 500);
    socket.on('close', () => clearInterval(timer));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets.clients) socket.terminate();
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}
