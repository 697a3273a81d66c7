# What an application does with Perl's Net::Stomp. Told by and tells in JSON; no test itself.
use strict;
use warnings;
use utf8;
use Encode qw(decode_utf8 encode_utf8);
use JSON::PP;
use Net::Stomp;

my $PATIENCE = 60;
$| = 1;
my $task = JSON::PP->new->utf8->decode($ARGV[0]);
my ($version, $queue, $topic) = ($task->{version}, "/queue/$task->{name}", "/topic/$task->{name}");
my $stomp = Net::Stomp->new({
    hosts => [{ hostname => '127.0.0.1', port => $task->{port} }],
    timeout => $PATIENCE, receipt_timeout => $PATIENCE, reconnect_attempts => 0, connect_delay => 1,
});
my $connected = $stomp->connect({ $version eq '1.0' ? () : ('accept-version' => $version, host => 'localhost') });
my %told = (version => $connected->headers->{version});

# It takes the next frame for the receipt, so this is for what does not come back at once. In 1.1 its receipts hold the
# session, which has a colon, and it does not unescape them: with ActiveMQ, too, it waits in vain there.
sub publish {
    my ($frame) = @_;
    $version eq '1.0' ? $stomp->send_with_receipt($frame) || die 'no receipt' : $stomp->send($frame);
}

sub take {
    my $frame = $stomp->receive_frame({ timeout => $PATIENCE }) or die 'nothing came';
    die $frame->as_string unless $frame->command eq 'MESSAGE';
    return $frame;
}
sub ack { my ($frame) = @_; $stomp->ack({ frame => $frame, $version eq '1.0' ? () : (subscription => 'work') }) }

# In 1.0 a subscription with an id ends by its destination alone.
sub unsubscribe { my ($id, $destination) = @_; $stomp->unsubscribe({ $version eq '1.0' ? (destination => $destination) : (id => $id) }) }

publish({ destination => $queue, body => encode_utf8('Grüße ☃'), persistent => 'true', odd => 'plain' });
$stomp->subscribe({ destination => $queue, id => 'work', ack => 'client-individual' });
my $frame = take();
@told{qw(text header destination)} = (decode_utf8($frame->body), $frame->headers->{odd}, $frame->headers->{destination});
ack($frame);

$stomp->send_frame(Net::Stomp::Frame->new({ command => 'BEGIN', headers => { transaction => 't1' } }));
$stomp->send({ destination => $queue, body => 'aborted', transaction => 't1' });
$stomp->send_frame(Net::Stomp::Frame->new({ command => 'ABORT', headers => { transaction => 't1' } }));
$stomp->send_frame(Net::Stomp::Frame->new({ command => 'BEGIN', headers => { transaction => 't2' } }));
$stomp->send({ destination => $queue, body => 'committed', persistent => 'true', transaction => 't2' });
$stomp->send_frame(Net::Stomp::Frame->new({ command => 'COMMIT', headers => { transaction => 't2' } }));
$frame = take();
$told{transaction} = $frame->body;
ack($frame);

if ($version ne '1.0') {
    $stomp->subscribe({ destination => '/queue/ActiveMQ.DLQ', id => 'dead', ack => 'auto', selector => "name = '$task->{name}'" });
    $stomp->send({ destination => $queue, body => 'unwanted', persistent => 'true', name => $task->{name} });
    $stomp->nack({ frame => take(), subscription => 'work' });
    $told{'dead letter'} = take()->body;
}

$stomp->subscribe({ destination => $topic, id => 'news', ack => 'auto' });
$stomp->send({ destination => $topic, body => 'x' x 300_000 });
$told{large} = length take()->body;
unsubscribe('news', $topic);
publish({ destination => $topic, body => 'nobody hears this' });
$stomp->send({ destination => $queue, body => 'kept', persistent => 'true' });
$told{'after unsubscribing'} = take()->body eq 'kept' ? 0 : 1;
print "restart\n";
<STDIN>;
$frame = undef;
# The broken connection is noticed by reading from it; reading again connects again, and subscribes.
for (1 .. 10) { last if $frame = eval { $stomp->receive_frame({ timeout => $PATIENCE }) } }
@told{qw(kept redelivered)} = ($frame->body, $frame->headers->{redelivered});
ack($frame);
$stomp->send({ destination => $queue, body => 'after', persistent => 'true' });
$frame = take();
$told{after} = $frame->body;
ack($frame);
$stomp->disconnect;
$told{large} += 0;
print JSON::PP->new->utf8->encode(\%told), "\n";
