// What the scripts of this folder share: lists one can wait for the next of, and the moment in which the broker restarts.
import { once } from "node:events";

export const PATIENCE = 60_000;

export class Waiting {
  constructor() {
    this.items = [];
    this.takers = [];
  }
  put(item) {
    const taker = this.takers.shift();
    taker ? taker(item) : this.items.push(item);
  }
  take(what) {
    return new Promise((resolve, reject) => {
      if (this.items.length) return resolve(this.items.shift());
      const timer = setTimeout(() => reject(new Error(`nothing came: ${what}`)), PATIENCE);
      this.takers.push((item) => {
        clearTimeout(timer);
        resolve(item);
      });
    });
  }
}

export async function restart() {
  console.log("restart");
  await once(process.stdin, "data");
}
