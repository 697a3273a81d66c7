# What an application does with Ruby's stomp. Told by and tells in JSON; no test itself.
require "json"
require "stomp"
require "timeout"

PATIENCE = 60
task = JSON.parse(ARGV[0])
version, queue, topic = task["version"], "/queue/#{task["name"]}", "/topic/#{task["name"]}"
connect = version == "1.0" ? {} : { "accept-version" => version, "host" => "localhost" }
client = Stomp::Client.new(
  hosts: [{ login: "", passcode: "", host: "127.0.0.1", port: task["port"], ssl: false }],
  reliable: true, initial_reconnect_delay: 0.05, max_reconnect_delay: 0.5, connect_headers: connect,
)
told = { "version" => client.protocol }

take = lambda { |messages| Timeout.timeout(PATIENCE) { messages.pop } }
listen = lambda do |destination, headers|
  messages = Queue.new
  client.subscribe(destination, headers) { |message| messages << message }
  messages
end
# With a block, publish asks for a receipt.
publish = lambda do |destination, body, headers = {}|
  receipts = Queue.new
  client.publish(destination, body, { "persistent" => "true" }.merge(headers)) { |receipt| receipts << receipt }
  take.call(receipts)
end

work = listen.call(queue, { "id" => "work", "ack" => "client-individual" })
publish.call(queue, "Grüße ☃", { "odd" => version == "1.0" ? "plain" : "a:b\nc\\d" })
message = take.call(work)
told.update("text" => message.body, "header" => message.headers["odd"], "destination" => message.headers["destination"])
client.ack(message)

client.begin("t1")
client.publish(queue, "aborted", { "transaction" => "t1" })
client.abort("t1")
client.begin("t2")
client.publish(queue, "committed", { "transaction" => "t2", "persistent" => "true" })
client.commit("t2")
message = take.call(work)
told["transaction"] = message.body
client.ack(message)

unless version == "1.0"
  dead = listen.call("/queue/ActiveMQ.DLQ", { "id" => "dead", "ack" => "auto", "selector" => "name = '#{task["name"]}'" })
  publish.call(queue, "unwanted", { "name" => task["name"] })
  client.nack(take.call(work))
  told["dead letter"] = take.call(dead).body
end

news = listen.call(topic, { "id" => "news", "ack" => "auto" })
publish.call(topic, "x" * 300_000)
told["large"] = take.call(news).body.bytesize
client.unsubscribe(topic, { "id" => "news" })
publish.call(topic, "nobody hears this")
told["after unsubscribing"] = news.size

publish.call(queue, "kept")
take.call(work)
puts "restart"
$stdout.flush
$stdin.gets
message = take.call(work)
told.update("kept" => message.body, "redelivered" => message.headers["redelivered"])
client.ack(message)
publish.call(queue, "after")
message = take.call(work)
told["after"] = message.body
client.ack(message)
client.close
puts JSON.generate(told)
