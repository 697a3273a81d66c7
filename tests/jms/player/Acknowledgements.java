import java.util.ArrayList;
import java.util.List;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.ActiveMQSession;

/** Acknowledgement modes, redelivery, transactions. */
public class Acknowledgements {
    private static final String[] TEXTS = {"a", "b", "c", "d", "e"};

    /** A queue with five messages. */
    private static String filled(Scene scene) throws Exception {
        Session session = scene.session();
        MessageProducer producer = session.createProducer(session.createQueue(scene.own("Q")));
        for (String each : TEXTS) {
            producer.send(session.createTextMessage(each));
        }
        return scene.own("Q");
    }

    private static MessageConsumer consumer(Scene scene, String options, int mode, String queue) throws Exception {
        Session session = scene.connect(options).createSession(mode == Session.SESSION_TRANSACTED, mode);
        return session.createConsumer(session.createQueue(queue));
    }

    /** What is left in the queue: text, whether it was redelivered, the delivery count. */
    private static List<String> left(Scene scene, String queue) throws Exception {
        MessageConsumer consumer = consumer(scene, "", Session.AUTO_ACKNOWLEDGE, queue);
        List<String> found = new ArrayList<>();
        for (Message message; (message = consumer.receive(Scene.QUIET)) != null; ) {
            found.add(Scene.text(message) + " " + message.getJMSRedelivered() + " " + Scene.deliveryCount(message));
        }
        return found;
    }

    public static void client_acknowledges_all_before(Scene scene) throws Exception {
        String queue = filled(scene);
        ActiveMQConnection connection = scene.connect();
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
        consumer.receive(Scene.PATIENCE);
        consumer.receive(Scene.PATIENCE);
        consumer.receive(Scene.PATIENCE).acknowledge();
        consumer.receive(Scene.PATIENCE);
        connection.close();
        scene.note("left", left(scene, queue));
    }

    public static void individual_out_of_order(Scene scene) throws Exception {
        String queue = filled(scene);
        ActiveMQConnection connection = scene.connect();
        Session session = connection.createSession(false, ActiveMQSession.INDIVIDUAL_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
        List<Message> got = new ArrayList<>();
        for (String ignored : TEXTS) {
            got.add(consumer.receive(Scene.PATIENCE));
        }
        got.get(3).acknowledge();
        got.get(1).acknowledge();
        connection.close();
        scene.note("left", left(scene, queue));
    }

    public static void in_groups(Scene scene) throws Exception {
        String queue = filled(scene);
        for (String options : List.of("", "jms.optimizeAcknowledge=true")) {
            ActiveMQConnection connection = scene.connect(options);
            Session session = connection.createSession(false, options.isEmpty() ? Session.DUPS_OK_ACKNOWLEDGE : Session.AUTO_ACKNOWLEDGE);
            MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
            scene.note("got " + options, Scene.texts(consumer, 2));
            consumer.close();
            connection.close();
        }
        scene.note("left", left(scene, queue));
    }

    public static void recovered_sessions(Scene scene) throws Exception {
        String queue = filled(scene);
        Session session = scene.connect("jms.redeliveryPolicy.initialRedeliveryDelay=10").createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
        scene.note("before", Scene.texts(consumer, 2));
        session.recover();
        List<String> after = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            Message message = consumer.receive(Scene.PATIENCE);
            after.add(Scene.text(message) + " " + message.getJMSRedelivered() + " " + Scene.deliveryCount(message));
        }
        scene.note("after", after);
    }

    public static void poison(Scene scene) throws Exception {
        String queue = filled(scene);
        ActiveMQConnectionFactory factory = scene.factory("jms.redeliveryPolicy.maximumRedeliveries=2&jms.redeliveryPolicy.initialRedeliveryDelay=5");
        Session session = scene.started(factory, null).createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
        List<String> tries = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            Message message = consumer.receive(Scene.PATIENCE);
            tries.add(Scene.text(message) + " " + Scene.deliveryCount(message));
            if (i < 3) {
                session.rollback();
            }
        }
        session.commit();
        scene.note("tries", tries);
        Session dead = scene.session();
        MessageConsumer letters = dead.createConsumer(dead.createQueue("ActiveMQ.DLQ"), "JMSDestination = 'queue://" + queue + "' OR TRUE");
        for (Message each; (each = letters.receive(Scene.PATIENCE)) != null; ) {
            if (!Scene.text(each).equals("a") || each.getStringProperty("dlqDeliveryFailureCause") == null) {
                continue;
            }
            String cause = each.getStringProperty("dlqDeliveryFailureCause");
            scene.note("cause", cause.replaceAll("ID:\\S*|\\[.*|after.*", ""));
            scene.note("dead letter", Scene.text(each));
            break;
        }
    }

    public static void listeners_that_throw(Scene scene) throws Exception {
        String queue = filled(scene);
        Session session = scene.connect("jms.redeliveryPolicy.maximumRedeliveries=1&jms.redeliveryPolicy.initialRedeliveryDelay=5").createSession(false, Session.AUTO_ACKNOWLEDGE);
        List<String> seen = java.util.Collections.synchronizedList(new ArrayList<>());
        java.util.concurrent.CountDownLatch all = new java.util.concurrent.CountDownLatch(6);
        session.createConsumer(session.createQueue(queue)).setMessageListener(message -> {
            try {
                seen.add(Scene.text(message) + message.getJMSRedelivered());
                all.countDown();
                if (Scene.text(message).equals("b")) {
                    throw new IllegalStateException("not this one");
                }
            } catch (javax.jms.JMSException failed) {
                seen.add(failed.toString());
            }
        });
        all.await(60, java.util.concurrent.TimeUnit.SECONDS);
        // In which order: what the client had taken for its listener comes before the redelivery or after it.
        scene.note("seen", seen.stream().sorted().toList());
    }

    public static void commit(Scene scene) throws Exception {
        Session session = scene.connect().createSession(true, Session.SESSION_TRANSACTED);
        MessageProducer producer = session.createProducer(session.createQueue(scene.own("Q")));
        Session other = scene.session();
        MessageConsumer outside = other.createConsumer(other.createQueue(scene.own("Q")));
        producer.send(session.createTextMessage("a"));
        producer.send(session.createTextMessage("b"));
        scene.note("before", Scene.rest(outside));
        session.commit();
        scene.note("after", Scene.texts(outside, 2));
        producer.send(session.createTextMessage("c"));
        session.rollback();
        scene.note("rolled back", Scene.rest(outside));
    }

    public static void rollback(Scene scene) throws Exception {
        String queue = filled(scene);
        ActiveMQConnection connection = scene.connect("jms.redeliveryPolicy.initialRedeliveryDelay=5");
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
        MessageProducer producer = session.createProducer(session.createQueue(scene.own("Other")));
        Scene.texts(consumer, 2);
        producer.send(session.createTextMessage("never"));
        session.rollback();
        List<String> again = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            Message message = consumer.receive(Scene.PATIENCE);
            again.add(Scene.text(message) + " " + message.getJMSRedelivered() + " " + Scene.deliveryCount(message));
        }
        session.commit();
        connection.close();
        scene.note("again", again);
        scene.note("left", left(scene, queue));
        scene.note("sent", left(scene, scene.own("Other")));
    }

    public static void an_open_transaction_ends_with_its_connection(Scene scene) throws Exception {
        String queue = filled(scene);
        ActiveMQConnection connection = scene.connect();
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        scene.note("got", Scene.texts(session.createConsumer(session.createQueue(queue)), 2));
        session.createProducer(session.createQueue(queue)).send(session.createTextMessage("never"));
        connection.close();
        scene.note("left", left(scene, queue));
    }
}
