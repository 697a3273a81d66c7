import java.util.ArrayList;
import java.util.List;
import javax.jms.BytesMessage;
import javax.jms.DeliveryMode;
import javax.jms.Destination;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.TextMessage;
import javax.jms.Topic;
import org.apache.activemq.ActiveMQConnection;

/** Options of destinations, messages that pass through several hands, and what returns to whom. */
public class Delivery {
    private static void fill(Session session, Destination destination, int count, String... group) throws Exception {
        MessageProducer producer = session.createProducer(destination);
        for (int i = 0; i < count; i++) {
            Message message = session.createTextMessage("m" + i);
            message.setIntProperty("n", i);
            if (group.length > 0) {
                message.setStringProperty("JMSXGroupID", group[i % group.length]);
            }
            producer.send(message);
        }
        producer.close();
    }

    private static List<String> states(MessageConsumer consumer) throws Exception {
        List<String> found = new ArrayList<>();
        for (Message each; (each = consumer.receive(2 * Scene.QUIET)) != null; ) {
            found.add(Scene.text(each) + " " + each.getJMSRedelivered() + " " + Scene.deliveryCount(each));
        }
        return found;
    }

    public static void options_of_destinations(Scene scene) throws Exception {
        Session session = scene.session();
        List<String> all = List.of("selector=n>2", "prefetchSize=0", "dispatchAsync=false", "exclusive=true",
                                   "priority=10", "maximumPendingMessageLimit=3", "nonsense=1");
        for (String each : all) {
            String queue = scene.own("Q" + all.indexOf(each));
            fill(session, session.createQueue(queue), 4);
            scene.attempt(each, () -> {
                MessageConsumer consumer = session.createConsumer(session.createQueue(queue + "?consumer." + each));
                scene.note("got with " + each, Scene.rest(consumer));
                consumer.close();
            });
        }
    }

    public static void forwarded_messages(Scene scene) throws Exception {
        Session session = scene.session();
        Queue first = session.createQueue(scene.own("A")), second = session.createQueue(scene.own("B"));
        TextMessage message = session.createTextMessage("text");
        message.setIntProperty("n", 1);
        message.setJMSCorrelationID("c");
        message.setJMSReplyTo(first);
        message.setStringProperty("JMSXGroupID", "g");
        session.createProducer(first).send(message, DeliveryMode.NON_PERSISTENT, 7, 100_000);
        Message got = session.createConsumer(first).receive(Scene.PATIENCE);
        session.createProducer(second).send(got);
        Message again = session.createConsumer(second).receive(Scene.PATIENCE);
        scene.note("of its last sender", again.getJMSMessageID().equals(got.getJMSMessageID()));
        scene.note("headers", List.of(Scene.text(again), again.getJMSPriority(), again.getJMSDeliveryMode(), again.getJMSExpiration(),
            again.getJMSCorrelationID(), again.getJMSReplyTo().equals(first), again.getJMSRedelivered()));
        scene.note("properties", Messages.properties(again));
    }

    public static void empty_bodies(Scene scene) throws Exception {
        for (String options : List.of("", "jms.useCompression=true")) {
            Session session = scene.connect(options).createSession(false, Session.AUTO_ACKNOWLEDGE);
            Queue queue = session.createQueue(scene.own("Q" + options.length()));
            MessageProducer producer = session.createProducer(queue);
            List<Message> all = List.of(session.createTextMessage(), session.createTextMessage(""), session.createBytesMessage(),
                                        session.createMapMessage(), session.createStreamMessage(), session.createMessage());
            for (Message each : all) {
                producer.send(each);
            }
            MessageConsumer consumer = session.createConsumer(queue);
            List<String> got = new ArrayList<>();
            for (Message ignored : all) {
                Message each = consumer.receive(Scene.PATIENCE);
                String body = each instanceof TextMessage text ? "" + text.getText()
                    : each instanceof BytesMessage bytes ? "" + bytes.getBodyLength()
                    : each instanceof MapMessage map ? "" + map.getMapNames().hasMoreElements() : "";
                got.add(each.getClass().getSimpleName() + " " + body);
            }
            scene.note("got " + options, got);
        }
    }

    public static void stopped_connections(Scene scene) throws Exception {
        ActiveMQConnection connection = scene.connect();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE), other = scene.session();
        Queue queue = session.createQueue(scene.own("Q"));
        MessageConsumer consumer = session.createConsumer(queue);
        connection.stop();
        fill(other, queue, 2);
        scene.note("stopped", Scene.rest(consumer));
        connection.start();
        scene.note("started", Scene.texts(consumer, 2));
        scene.attempt("wrong selector", () -> session.createConsumer(queue, "a = = 1"));
        scene.attempt("the session goes on", () -> session.createConsumer(queue, "a = 1"));
    }

    public static void groups_in_transactions(Scene scene) throws Exception {
        Session first = scene.connect().createSession(true, Session.SESSION_TRANSACTED);
        Session second = scene.connect().createSession(true, Session.SESSION_TRANSACTED), other = scene.session();
        Queue queue = first.createQueue(scene.own("Q"));
        MessageConsumer one = first.createConsumer(queue);
        fill(other, queue, 6, "g", "h");
        scene.note("first", Scene.texts(one, 3));
        MessageConsumer two = second.createConsumer(queue);
        scene.note("second", Scene.rest(two));
        first.rollback();
        scene.note("again", Scene.texts(one, 2));
        first.commit();
        one.close();
        scene.note("taken over", states(two));
        second.commit();
    }

    public static void durable_subscribers_that_roll_back(Scene scene) throws Exception {
        Topic topic = scene.session().createTopic(scene.own("T"));
        for (String each : List.of("rollback", "close", "commit")) {
            ActiveMQConnection connection = scene.connectAs(scene.own("id"));
            Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
            MessageConsumer consumer = session.createDurableSubscriber(topic, "sub");
            if (each.equals("rollback")) {
                fill(scene.session(), topic, 3);
                Scene.texts(consumer, 2);
                session.rollback();
            }
            scene.note("before " + each, each.equals("commit") ? Scene.rest(consumer) : states(consumer));
            if (each.equals("commit")) {
                session.commit();
            }
            connection.close();
        }
        Session session = scene.connectAs(scene.own("id")).createSession(false, Session.AUTO_ACKNOWLEDGE);
        scene.note("rest", Scene.rest(session.createDurableSubscriber(topic, "sub")));
    }

    public static void pulls_after_recover(Scene scene) throws Exception {
        Session session = scene.connect("jms.prefetchPolicy.all=0").createSession(false, Session.CLIENT_ACKNOWLEDGE);
        Queue queue = session.createQueue(scene.own("Q"));
        MessageConsumer consumer = session.createConsumer(queue), selective = session.createConsumer(queue, "n > 0");
        scene.note("none", consumer.receiveNoWait() == null && consumer.receive(200) == null);
        fill(scene.session(), queue, 3);
        scene.note("first", Scene.texts(consumer, 1));
        scene.note("selected", Scene.texts(selective, 2));
        scene.note("none left", consumer.receiveNoWait() == null);
        session.recover();
        scene.note("recovered", Scene.texts(consumer, 1));
    }

    public static void groups_of_jms_and_stomp(Scene scene) throws Exception {
        Session session = scene.session(), other = scene.session();
        Queue queue = session.createQueue(scene.own("Q"));
        MessageConsumer consumer = session.createConsumer(queue);
        try (StompClient stomp = new StompClient(scene.brokers.stomp())) {
            stomp.confirmed("SUBSCRIBE\nid:1\nack:auto\ndestination:/queue/" + scene.own("Q") + "\n\n", "");
            fill(other, queue, 8, "g", "h");
            List<String> mine = Scene.rest(consumer);
            List<String> theirs = new ArrayList<>();
            for (StompClient.Frame each; (each = stomp.receive(Scene.QUIET)) != null; ) {
                theirs.add(each.text());
            }
            scene.note("all", mine.size() + theirs.size());
            scene.note("whole groups", mine.size() % 4 == 0);
        }
        fill(other, queue, 1, "g");
        scene.note("after", Scene.texts(consumer, 1));
    }
}
