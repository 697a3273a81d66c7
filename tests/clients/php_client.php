<?php
// What an application does with PHP's stomp extension. Told by and tells in JSON; no test itself.
const PATIENCE = 60;
$task = json_decode($argv[1], true);
[$version, $queue, $topic] = [$task["version"], "/queue/{$task["name"]}", "/topic/{$task["name"]}"];

function connected(array $task): Stomp {
    $headers = $task["version"] === "1.0" ? [] : ["accept-version" => $task["version"], "host" => "localhost"];
    for ($until = time() + PATIENCE; ; usleep(50_000)) {
        try {
            $stomp = new Stomp("tcp://127.0.0.1:{$task["port"]}", "", "", $headers);
            $stomp->setReadTimeout(PATIENCE);
            return $stomp;
        } catch (StompException $error) {
            if (time() > $until) throw $error;
        }
    }
}

// With a receipt, send waits for it.
function publish(Stomp $stomp, string $destination, string $body, array $headers = []): void {
    static $receipts = 0;
    $told = $stomp->send($destination, $body, $headers + ["persistent" => "true", "receipt" => "r" . ++$receipts]);
    if (!$told) throw new Exception("no receipt: " . $stomp->error());
}

function take(Stomp $stomp): StompFrame {
    $frame = $stomp->readFrame();
    if ($frame === false) throw new Exception("nothing came: " . $stomp->error());
    return $frame;
}

$stomp = connected($task);
$told = ["version" => $version];
$work = ["id" => "work", "ack" => "client-individual"];
$stomp->subscribe($queue, $work);
publish($stomp, $queue, "Grüße ☃", ["odd" => "plain"]);
$frame = take($stomp);
$told += ["text" => $frame->body, "header" => $frame->headers["odd"], "destination" => $frame->headers["destination"]];
$stomp->ack($frame);

$stomp->begin("t1");
$stomp->send($queue, "aborted", ["transaction" => "t1"]);
$stomp->abort("t1");
$stomp->begin("t2");
$stomp->send($queue, "committed", ["transaction" => "t2", "persistent" => "true"]);
$stomp->commit("t2");
$frame = take($stomp);
$told["transaction"] = $frame->body;
$stomp->ack($frame);

$stomp->subscribe($topic, ["id" => "news", "ack" => "auto"]);
publish($stomp, $topic, str_repeat("x", 300_000));
$told["large"] = strlen(take($stomp)->body);
$stomp->unsubscribe($topic, ["id" => "news"]);
publish($stomp, $topic, "nobody hears this");
publish($stomp, $queue, "kept");
$told["after unsubscribing"] = take($stomp)->body === "kept" ? 0 : 1;
echo "restart\n";
fgets(STDIN);
// The extension does not connect again by itself.
unset($stomp);
$stomp = connected($task);
$stomp->subscribe($queue, $work);
$frame = take($stomp);
$told += ["kept" => $frame->body, "redelivered" => $frame->headers["redelivered"]];
$stomp->ack($frame);
publish($stomp, $queue, "after");
$frame = take($stomp);
$told["after"] = $frame->body;
$stomp->ack($frame);
unset($stomp);
echo json_encode($told), "\n";
