// What an application does with stompjs 2, over TCP. Told by and tells in JSON; no test itself.
import Stomp from "stompjs";
import { restart, Waiting } from "./waiting.mjs";

const task = JSON.parse(process.argv[2]);
const queue = `/queue/${task.name}`;
const topic = `/topic/${task.name}`;
const told = {};

// It does not connect again by itself: an application does so when it is told that the connection broke.
const clients = new Waiting();
const receipts = {};
const connect = () => {
  const client = Stomp.overTCP("127.0.0.1", task.port);
  client.debug = null;
  client.heartbeat.outgoing = client.heartbeat.incoming = 0;
  client.onreceipt = (frame) => receipts[frame.headers["receipt-id"]]();
  client.connect({}, (frame) => clients.put({ client, frame }), () => setTimeout(connect, 100));
};
connect();

let client;
const subscribe = (destination, headers) => {
  const messages = new Waiting();
  const subscription = client.subscribe(destination, (message) => messages.put(message), headers);
  return { next: (what) => messages.take(what), left: () => messages.items.length, end: () => subscription.unsubscribe() };
};
let number = 0;
const publish = (destination, body, headers = {}) =>
  new Promise((resolve) => {
    receipts[`r${++number}`] = resolve;
    client.send(destination, { persistent: "true", receipt: `r${number}`, ...headers }, body);
  });

const first = await clients.take("a connection");
client = first.client;
told.version = first.frame.headers.version;
let work = subscribe(queue, { ack: "client-individual" });
await publish(queue, "Grüße ☃", { odd: "plain" });
let message = await work.next("text");
Object.assign(told, { text: message.body, header: message.headers.odd, destination: message.headers.destination });
message.ack();

const aborted = client.begin();
client.send(queue, { transaction: aborted.id }, "aborted");
aborted.abort();
const kept = client.begin();
client.send(queue, { transaction: kept.id, persistent: "true" }, "committed");
kept.commit();
message = await work.next("committed");
told.transaction = message.body;
message.ack();

const dead = subscribe("/queue/ActiveMQ.DLQ", { ack: "auto", selector: `name = '${task.name}'` });
await publish(queue, "unwanted", { name: task.name });
(await work.next("unwanted")).nack();
told["dead letter"] = (await dead.next("dead letter")).body;

const news = subscribe(topic, {});
await publish(topic, "x".repeat(10_000)); // it takes each read from its socket for whole frames
told.large = (await news.next("large")).body.length;
news.end();
await publish(topic, "nobody hears this");
told["after unsubscribing"] = news.left();

await publish(queue, "kept");
await work.next("kept");
await restart();
client = (await clients.take("a connection after the restart")).client;
work = subscribe(queue, { ack: "client-individual" });
message = await work.next("kept, again");
Object.assign(told, { kept: message.body, redelivered: message.headers.redelivered });
message.ack();
await publish(queue, "after");
message = await work.next("after");
told.after = message.body;
message.ack();
client.disconnect(() => {
  console.log(JSON.stringify(told));
  process.exit(0);
});
