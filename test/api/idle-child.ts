/** Opens idle connections to a port, some of them WebSockets, and says when all are open. Ends when its input does. */
import { connect } from 'node:net';

const [port = '0', count = '0'] = process.argv.slice(2);
let open = 0;
for (let i = 0; i < Number(count); i++) {
  const socket = connect(Number(port), '127.0.0.1');
  socket.on('error', () => undefined);
  const opened = () => {
    if (++open === Number(count)) process.stdout.write('open\n');
  };
  socket.on('connect', () => {
    // Every other one is a reader of events that sends nothing more; the rest send nothing at all.
    if (i % 2 === 0) opened();
    else
      socket.write(
        'GET /v1/events HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n' +
          'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nsec-websocket-protocol: svc.node-events.v1\r\n\r\n',
      );
  });
  if (i % 2 === 1) socket.once('data', opened);
  socket.resume();
  if (i % 100 === 99) await new Promise((resolve) => setTimeout(resolve, 10));
}
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
