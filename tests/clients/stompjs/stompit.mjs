// What an application does with stompit. Told by and tells in JSON; no test itself.
import stompit from "stompit";
import { restart, Waiting } from "./waiting.mjs";

const task = JSON.parse(process.argv[2]);
const queue = `/queue/${task.name}`;
const topic = `/topic/${task.name}`;
const told = {};

// Its fail-over connects again when the client broke.
const clients = new Waiting();
const failover = new stompit.ConnectFailover(
  [{ host: "127.0.0.1", port: task.port, connectHeaders: { host: "localhost", "accept-version": task.version } }],
  { initialReconnectDelay: 50, maxReconnectDelay: 500, maxReconnects: 1000 },
);
failover.connect((error, client, reconnect) => {
  if (error) throw error;
  client.on("error", () => reconnect());
  clients.put(client);
});

let client;
const subscribe = (destination, headers) => {
  const messages = new Waiting();
  const subscription = client.subscribe({ destination, ...headers }, (error, message) => {
    if (error) return;
    message.readString("utf-8", (failed, body) => failed || messages.put({ message, body, headers: message.headers }));
  });
  return { next: (what) => messages.take(what), left: () => messages.items.length, end: () => subscription.unsubscribe() };
};
const publish = (destination, body, headers = {}) =>
  new Promise((resolve) =>
    client.sendString({ destination, persistent: "true", ...headers }, body, { onReceipt: resolve }, () => {}),
  );

client = await clients.take("a connection");
told.version = task.version;
let work = subscribe(queue, { ack: "client-individual" });
await publish(queue, "Grüße ☃", { odd: task.version === "1.0" ? "plain" : "a:b\nc\\d" });
let got = await work.next("text");
Object.assign(told, { text: got.body, header: got.headers.odd, destination: got.headers.destination });
client.ack(got.message);

const aborted = client.begin();
aborted.send({ destination: queue }).end("aborted");
aborted.abort();
const kept = client.begin();
kept.send({ destination: queue, persistent: "true" }).end("committed");
kept.commit();
got = await work.next("committed");
told.transaction = got.body;
client.ack(got.message);

if (task.version !== "1.0") {
  const dead = subscribe("/queue/ActiveMQ.DLQ", { ack: "auto", selector: `name = '${task.name}'` });
  await publish(queue, "unwanted", { name: task.name });
  client.nack((await work.next("unwanted")).message);
  told["dead letter"] = (await dead.next("dead letter")).body;
}

const news = subscribe(topic, { ack: "auto" });
await publish(topic, "x".repeat(300_000));
told.large = (await news.next("large")).body.length;
news.end();
await publish(topic, "nobody hears this");
told["after unsubscribing"] = news.left();

await publish(queue, "kept");
await work.next("kept");
await restart();
client = await clients.take("a connection after the restart");
work = subscribe(queue, { ack: "client-individual" });
got = await work.next("kept, again");
Object.assign(told, { kept: got.body, redelivered: got.headers.redelivered });
client.ack(got.message);
await publish(queue, "after");
got = await work.next("after");
told.after = got.body;
client.ack(got.message);
client.disconnect(() => {
  console.log(JSON.stringify(told));
  process.exit(0);
});
