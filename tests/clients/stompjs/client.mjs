// What an application does with @stomp/stompjs. Told by and tells in JSON; no test itself.
import { readFileSync } from "node:fs";
import { Client, Versions } from "@stomp/stompjs";
import { WebSocket } from "ws";
import { Waiting } from "./waiting.mjs";

const task = JSON.parse(process.argv[2]);
const told = {};
const connected = new Waiting();
const errors = new Waiting();
const closed = new Waiting();
const client = new Client({
  webSocketFactory: () =>
    new WebSocket(`${task.scheme}://localhost:${task.port}/stomp`, Versions.default.protocolVersions(), {
      ca: readFileSync(task.ca),
    }),
  stompVersions: new Versions([task.version]),
  heartbeatIncoming: 500,
  heartbeatOutgoing: 500,
  reconnectDelay: 0,
  splitLargeFrames: true,
  maxWebSocketChunkSize: 8 * 1024,
  onConnect: (frame) => connected.put(frame),
  onStompError: (frame) => errors.put(frame),
  onWebSocketClose: () => closed.put(true),
  onWebSocketError: (event) => console.error(event.message),
});
let receipts = 0;
const receipt = async (ask) => {
  const id = `r${++receipts}`;
  const done = new Waiting();
  client.watchForReceipt(id, () => done.put(true));
  ask(id);
  await done.take(`receipt ${id}`);
};
const publish = (destination, body, headers = {}, more = {}) =>
  receipt((id) => client.publish({ destination, body, headers: { persistent: "true", ...headers, receipt: id }, ...more }));
const subscribe = async (destination, headers) => {
  const messages = new Waiting();
  let subscription;
  await receipt((id) => {
    subscription = client.subscribe(destination, (message) => messages.put(message), { ...headers, receipt: id });
  });
  return { next: (what) => messages.take(what), left: () => messages.items.length, end: (h) => subscription.unsubscribe(h) };
};

client.activate();
const hello = await connected.take("CONNECTED");
told.version = hello.headers.version;
told.heartBeat = hello.headers["heart-beat"];
told.subprotocol = client.webSocket.protocol;

const queue = `/queue/${task.name}`;
const topic = `/topic/${task.name}`;
const work = await subscribe(queue, { ack: "client-individual" });
// It escapes headers in 1.2 only.
await publish(queue, "Grüße ☃", { odd: task.version < "1.2" ? "plain" : "a:b\nc\\d" });
let message = await work.next("text");
Object.assign(told, { text: message.body, header: message.headers.odd, destination: message.headers.destination });
message.ack();

await receipt((id) =>
  client.publish({ destination: queue, binaryBody: new Uint8Array([0, 255, 0, 254]), headers: { receipt: id } }),
);
message = await work.next("bytes");
told.bytes = [...message.binaryBody];
message.ack();

const aborted = client.begin();
client.publish({ destination: queue, body: "aborted", headers: { transaction: aborted.id } });
aborted.abort();
const kept = client.begin();
client.publish({ destination: queue, body: "committed", headers: { transaction: kept.id } });
kept.commit();
message = await work.next("committed");
told.transaction = message.body;
message.ack();

if (task.version !== "1.0") {
  const dead = await subscribe("/queue/ActiveMQ.DLQ", { selector: `name = '${task.name}'` });
  await publish(queue, "unwanted", { name: task.name });
  (await work.next("unwanted")).nack();
  told.deadLetter = (await dead.next("dead letter")).body;
}

const news = await subscribe(topic, {});
await publish(topic, "x".repeat(300_000));
told.large = (await news.next("large")).body.length;
await receipt((id) => news.end({ receipt: id }));
await publish(topic, "nobody hears this");
told.afterUnsubscribing = news.left();

await new Promise((resolve) => setTimeout(resolve, 1600)); // three heart-beats: either side would give up without them
told.alive = client.connected;

client.subscribe(queue, () => {}, { selector: "a =" });
told.error = (await errors.take("ERROR")).headers.message;
await client.deactivate();
told.closed = await closed.take("the end");
console.log(JSON.stringify(told));
process.exit(0);
