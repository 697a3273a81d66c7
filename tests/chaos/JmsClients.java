import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TextMessage;
import javax.jms.Topic;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.command.ActiveMQDestination;
import org.apache.activemq.command.FlushCommand;
import org.apache.activemq.transport.DefaultTransportListener;

/**
 * JMS clients that stay connected with failover: while nodes break, and say what they do, one line for each event.
 *
 * An argument is a client, its fields separated by spaces: `producer NAME URL PLACE DESTINATION SIZE` sends transactions
 * of SIZE messages, or single ones that are confirmed (SIZE 0); `consumer NAME URL PLACE DESTINATION MODE`, MODE being
 * `client`, `durable` or `transacted`; `relay NAME URL PLACE DESTINATION PLACE DESTINATION` forwards in transactions.
 * Lines of the standard input: `begin` lets producers begin, `finish` lets them end.
 * Events: `send ID NAME NUMBER PLACE UNIT SOURCE`, `confirm ID...`; `got NUMBER NAME PLACE CONNECTION ID REDELIVERED`,
 * `settle NUMBER...`, `settled NUMBER...`; `failed NAME WHY`; `finished` when all producers have ended.
 */
public class JmsClients {
    private static final int BATCH = 5;
    private static final AtomicLong DELIVERIES = new AtomicLong();
    private static final CountDownLatch BEGIN = new CountDownLatch(1);
    private static volatile boolean isFinishing;

    public static void main(String[] arguments) throws Exception {
        List<Thread> producers = new ArrayList<>();
        for (String each : arguments) {
            String[] fields = each.split(" ");
            Thread working = new Thread(() -> new Client(fields).work(), fields[1]);
            working.setDaemon(true);
            working.start();
            if (fields[0].equals("producer")) {
                producers.add(working);
            }
        }
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        for (String order; (order = orders.readLine()) != null; ) {
            if (order.equals("begin")) {
                BEGIN.countDown();
            } else {
                isFinishing = true;
                for (Thread each : producers) {
                    each.join();
                }
                say("finished");
            }
        }
        Runtime.getRuntime().halt(0); // closing connections may wait for a broker
    }

    static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    /** One client with a connection of its own, which failover: mends. */
    private static final class Client {
        private final String kind, name, url, place, destination, last;
        private final String[] fields;
        private final AtomicInteger interruptions = new AtomicInteger();
        private int sent;
        private int units;

        Client(String[] fields) {
            this.fields = fields;
            kind = fields[0];
            name = fields[1];
            url = fields[2];
            place = fields[3];
            destination = fields[4];
            last = fields[5];
        }

        void work() {
            try {
                ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory(url);
                factory.setSendAcksAsync(false); // else an acknowledgement may be lost with its connection, unnoticed
                ActiveMQConnection connection = (ActiveMQConnection) factory.createConnection();
                connection.addTransportListener(new DefaultTransportListener() {
                    @Override
                    public void transportInterupted() {
                        interruptions.incrementAndGet();
                    }
                });
                if (last.equals("durable")) {
                    connection.setClientID(name);
                }
                connection.start();
                switch (kind) {
                    case "producer" -> produce(connection, Integer.parseInt(last));
                    case "relay" -> relay(connection.createSession(true, Session.SESSION_TRANSACTED));
                    default -> consume(connection, last.equals("transacted"));
                }
            } catch (JMSException | InterruptedException failure) {
                failed(failure);
            }
        }

        private void failed(Exception failure) {
            say("failed " + name + " " + String.valueOf(failure).replaceAll("\\s+", " "));
        }

        private static Destination at(String destination) {
            return ActiveMQDestination.createDestination(destination, ActiveMQDestination.QUEUE_TYPE);
        }

        /** Send the next message; returns its id. */
        private String send(Session session, MessageProducer producer, String to, String unit, String source) throws JMSException {
            String id = name + "-" + ++sent;
            say("send " + id + " " + name + " " + sent + " " + to + " " + unit + " " + source);
            producer.send(session.createTextMessage(id));
            return id;
        }

        private void produce(ActiveMQConnection connection, int size) throws JMSException, InterruptedException {
            Session session = connection.createSession(size > 0, size > 0 ? Session.SESSION_TRANSACTED : Session.AUTO_ACKNOWLEDGE);
            MessageProducer producer = session.createProducer(at(destination));
            BEGIN.await();
            while (!isFinishing) {
                try {
                    List<String> ids = new ArrayList<>();
                    String unit = size > 0 ? name + "." + ++units : "-";
                    for (int i = 0; i < Math.max(1, size); i++) {
                        ids.add(send(session, producer, place, unit, "-"));
                        Thread.sleep(10);
                    }
                    if (size > 0) {
                        session.commit();
                    }
                    say("confirm " + String.join(" ", ids));
                } catch (JMSException failure) {
                    failed(failure);
                    rollBack(session);
                }
                Thread.sleep(40);
            }
            connection.close();
        }

        private void rollBack(Session session) throws JMSException {
            if (session.getTransacted()) {
                try {
                    session.rollback();
                } catch (JMSException failure) {
                    failed(failure);
                }
            }
        }

        /** The numbers of the deliveries of the next batch, and the messages themselves. */
        private List<String> batch(MessageConsumer consumer, List<Message> messages) throws JMSException {
            List<String> numbers = new ArrayList<>();
            for (Message each; messages.size() < BATCH && (each = consumer.receive(100)) != null; ) {
                String number = String.valueOf(DELIVERIES.incrementAndGet());
                say("got " + number + " " + name + " " + place + " " + interruptions.get() + " " + ((TextMessage) each).getText()
                    + " " + each.getJMSRedelivered());
                messages.add(each);
                numbers.add(number);
            }
            return numbers;
        }

        private void consume(ActiveMQConnection connection, boolean transacted) throws JMSException, InterruptedException {
            Session session = connection.createSession(transacted, transacted ? Session.SESSION_TRANSACTED : Session.CLIENT_ACKNOWLEDGE);
            MessageConsumer consumer = last.equals("durable")
                ? session.createDurableSubscriber((Topic) at(destination), place) : session.createConsumer(at(destination));
            while (true) {
                List<Message> messages = new ArrayList<>();
                try {
                    int before = interruptions.get();
                    List<String> numbers = batch(consumer, messages);
                    if (messages.isEmpty()) {
                        continue;
                    }
                    say("settle " + String.join(" ", numbers));
                    if (transacted) {
                        session.commit();
                    } else {
                        messages.get(messages.size() - 1).acknowledge();
                        // After an interruption the client acknowledges nothing, and does not say so. An answer comes
                        // only after it has told the listener of all interruptions before.
                        connection.syncSendPacket(new FlushCommand());
                    }
                    if (transacted || interruptions.get() == before) {
                        say("settled " + String.join(" ", numbers));
                    }
                } catch (JMSException failure) {
                    failed(failure);
                    if (transacted) {
                        rollBack(session);
                    }
                }
            }
        }

        private void relay(Session session) throws JMSException {
            MessageConsumer consumer = session.createConsumer(at(destination));
            MessageProducer producer = session.createProducer(at(fields[6]));
            while (true) {
                List<Message> messages = new ArrayList<>();
                try {
                    List<String> numbers = batch(consumer, messages), ids = new ArrayList<>();
                    if (messages.isEmpty()) {
                        continue;
                    }
                    String unit = name + "." + ++units;
                    for (Message each : messages) {
                        ids.add(send(session, producer, fields[5], unit, ((TextMessage) each).getText()));
                    }
                    say("settle " + String.join(" ", numbers));
                    session.commit();
                    say("settled " + String.join(" ", numbers));
                    say("confirm " + String.join(" ", ids));
                } catch (JMSException failure) {
                    failed(failure);
                    rollBack(session);
                }
            }
        }
    }
}
