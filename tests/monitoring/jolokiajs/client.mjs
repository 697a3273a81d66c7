// Asks a Jolokia agent as hawtio does; prints what the client made of the answers. Usage: client.mjs URL USER PASSWORD
import Jolokia from "jolokia.js";

globalThis.window = globalThis; // it is made for browsers, and wants their btoa

const [url, username, password] = process.argv.slice(2);
const agent = new Jolokia({ url, username, password, method: "post" });
const broker = "org.apache.activemq:type=Broker,brokerName=localhost";
const queue = `${broker},destinationType=Queue,destinationName=Orders.In`;

async function outcome(asking) {
  try {
    return await asking;
  } catch (error) {
    return { failed: error.message ?? error.error };
  }
}

const [size, missing] = await agent.request([
  { type: "read", mbean: queue, attribute: "QueueSize" },
  { type: "read", mbean: "java.lang:type=Memory", attribute: "HeapMemoryUsage" },
]);
const byPath = await agent.request({ type: "read", mbean: queue, attribute: "Name" }, { method: "get" });
console.log(JSON.stringify({
  version: (await agent.request({ type: "version" })).value,
  size,
  missing,
  byPath,
  search: (await agent.request({ type: "search", mbean: `${broker},destinationType=Queue,destinationName=Orders.*` })).value,
  list: Object.keys((await agent.request({ type: "list" })).value),
  health: (await agent.request({ type: "exec", mbean: `${broker},service=Health`, operation: "health" })).value,
  purge: await outcome(agent.request({ type: "exec", mbean: queue, operation: "purge()" })),
}));
