import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicReference;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import javax.jms.TextMessage;
import javax.jms.Topic;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.ActiveMQMessageProducer;
import org.apache.activemq.AsyncCallback;

/**
 * Sends numbered orders and consumes them, and keeps a ledger of what each consumer got.
 *
 * Arguments: URL, queue or topic, persistent or not, producers, consumers, window (0: each send waits for its answer;
 * -1: no answers are asked for). Each line of input is a number of messages: sends that many, and answers one line:
 * deliveries, seconds, CPU seconds of this program, and how many messages are missing, doubled or out of order.
 */
public class JmsLoad {
    private static final String ORDER = "{\"customer\": \"Ada Lovelace\", \"lines\": [" + "{\"article\": 4711, \"count\": 2}, ".repeat(25) + "{}]}";
    private static final long PATIENCE = 120;

    private final boolean isTopic, isPersistent;
    private final int producers, consumers, window;
    private final List<Connection> connections = new ArrayList<>();
    private final ActiveMQConnectionFactory factory;
    private final AtomicReference<Exception> failure = new AtomicReference<>();
    private volatile Ledger ledger;

    /** What is still missing of one run, and what came too often or out of order. */
    private static final class Ledger {
        final AtomicIntegerArray counts;
        final CountDownLatch left;
        final int each;

        Ledger(int each, int copies) {
            this.each = each;
            counts = new AtomicIntegerArray(each * copies);
            left = new CountDownLatch(each * copies);
        }

        void got(int number, int copy) {
            counts.incrementAndGet(copy * each + number);
            left.countDown();
        }

        int of(int wanted) {
            int found = 0;
            for (int i = 0; i < counts.length(); i++) {
                found += wanted == 0 ? (counts.get(i) == 0 ? 1 : 0) : Math.max(0, counts.get(i) - 1);
            }
            return found;
        }
    }

    JmsLoad(String[] arguments) {
        factory = new ActiveMQConnectionFactory(arguments[0]);
        isTopic = arguments[1].equals("topic");
        isPersistent = arguments[2].equals("persistent");
        producers = Integer.parseInt(arguments[3]);
        consumers = Integer.parseInt(arguments[4]);
        window = Integer.parseInt(arguments[5]);
    }

    public static void main(String[] arguments) throws Exception {
        JmsLoad load = new JmsLoad(arguments);
        List<Session> sending = load.connect();
        System.out.println("ready");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null; ) {
            System.out.println(load.run(sending, Integer.parseInt(line.trim())));
        }
        for (Connection each : load.connections) {
            each.close();
        }
        System.exit(0);
    }

    private Destination destination(Session session) throws JMSException {
        return isTopic ? session.createTopic("orders") : session.createQueue("orders");
    }

    private List<Session> connect() throws JMSException {
        for (int i = 0; i < consumers; i++) {
            Connection connection = factory.createConnection();
            connections.add(connection);
            connection.setClientID("consumer-" + i);
            connection.start();
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            MessageConsumer consumer = isTopic ? session.createDurableSubscriber((Topic) destination(session), "orders")
                : session.createConsumer(destination(session));
            int copy = isTopic ? i : 0;
            consumer.setMessageListener(message -> {
                try {
                    TextMessage order = (TextMessage) message;
                    if (order.getText().length() != ORDER.length()) {
                        throw new JMSException("another text than was sent");
                    }
                    ledger.got(order.getIntProperty("number"), copy);
                } catch (JMSException failed) {
                    failure.compareAndSet(null, failed);
                }
            });
        }
        List<Session> sending = new ArrayList<>();
        for (int i = 0; i < producers; i++) {
            Connection connection = factory.createConnection();
            connections.add(connection);
            connection.start();
            sending.add(connection.createSession(false, Session.AUTO_ACKNOWLEDGE));
        }
        return sending;
    }

    private String run(List<Session> sending, int messages) throws Exception {
        int each = messages / producers, copies = isTopic ? consumers : 1;
        ledger = new Ledger(each * producers, copies);
        long began = System.nanoTime(), cpu = cpu();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < producers; i++) {
            int first = i * each;
            Session session = sending.get(i);
            Thread thread = new Thread(() -> {
                try {
                    send(session, first, each);
                } catch (Exception failed) {
                    failure.compareAndSet(null, failed);
                }
            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        ledger.left.await(PATIENCE, TimeUnit.SECONDS);
        double seconds = (System.nanoTime() - began) / 1e9;
        if (failure.get() != null) {
            return "{\"failure\": \"" + failure.get().toString().replace('"', '\'').replace('\n', ' ') + "\"}";
        }
        return String.format(java.util.Locale.ROOT,
            "{\"deliveries\": %d, \"seconds\": %.4f, \"cpu\": %.4f, \"missing\": %d, \"doubled\": %d}",
            each * producers * copies, seconds, (cpu() - cpu) / 1e9, ledger.of(0), ledger.of(2));
    }

    private void send(Session session, int first, int count) throws Exception {
        ActiveMQMessageProducer producer = (ActiveMQMessageProducer) session.createProducer(destination(session));
        producer.setDeliveryMode(isPersistent ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT);
        Semaphore room = new Semaphore(Math.max(window, 1));
        AsyncCallback answered = new AsyncCallback() {
            @Override
            public void onSuccess() {
                room.release();
            }

            @Override
            public void onException(JMSException refused) {
                failure.compareAndSet(null, refused);
                room.release();
            }
        };
        for (int number = first; number < first + count; number++) {
            TextMessage order = session.createTextMessage(ORDER);
            order.setIntProperty("number", number);
            order.setStringProperty("region", number % 2 == 0 ? "north" : "south");
            order.setDoubleProperty("total", number * 0.25);
            if (window > 0) {
                room.acquire();
                producer.send(order, answered);
            } else {
                producer.send(order);
            }
        }
        room.acquire(Math.max(window, 1)); // all were answered
        producer.close();
    }

    private static long cpu() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }
}
