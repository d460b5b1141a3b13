/** Nodes of one process in a line: each is connected to the one before and the one after it, and knows no other. */
import { freePort } from '../../../runtime/free-port.ts';
import { type NetBed, type NetNode, until } from '../../network/peers.ts';
import { untold } from '../../network/svcd.ts';

const CUTS = 2;

/** The first makes the cuts. */
export async function lineOf(bed: NetBed, count: number): Promise<NetNode[]> {
  const nodes: NetNode[] = [];
  for (let i = 0; i < count; i++) {
    const port = await freePort();
    nodes.push(
      await bed.start(`line-${i}`, {
        listen: [`/ip4/127.0.0.1/tcp/${port}`],
        announce: [untold(port)],
        bootstrap: nodes.slice(-1).map(({ view }) => view.addresses[0] as string),
        follows: i > 0,
      }),
    );
  }
  await bed.seal(nodes[0] as NetNode, CUTS, 1);
  await until(() => isJoined(nodes));
  await until(() => nodes.slice(1).every(({ node }) => node.chain.sync().synced && node.chain.head().height === CUTS));
  return nodes;
}

const nameOf = ({ view }: NetNode): string => /\/p2p\/(\w+)$/.exec(view.addresses[0] as string)?.[1] as string;

const neighboursOf = (nodes: readonly NetNode[], i: number): string[] =>
  [nodes[i - 1], nodes[i + 1]].filter((node) => node !== undefined).map(nameOf);

const connectedOf = ({ view }: NetNode): string[] => view.figures().peers.map(({ peer }) => peer);

/** Whether each is connected to its neighbours. */
const isJoined = (nodes: readonly NetNode[]): boolean =>
  nodes.every((node, i) => neighboursOf(nodes, i).every((name) => connectedOf(node).includes(name)));

/** Peers of nodes that are not their neighbours. */
export const strangersIn = (nodes: readonly NetNode[]): string[] =>
  nodes.flatMap((node, i) => connectedOf(node).filter((name) => !neighboursOf(nodes, i).includes(name)));
