import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.Session;
import org.apache.activemq.ScheduledMessage;

/** The scheduler: requests to it, wrong ones among them, and what it does with transactions and topics. */
public class Schedules {
    public static void delays_of_any_type(Scene scene) throws Exception {
        Session session = scene.session();
        Queue queue = session.createQueue(scene.own("Q"));
        MessageProducer producer = session.createProducer(queue);
        List<Object> delays = List.of("200", 200, 200L);
        for (Object each : delays) {
            Message message = session.createTextMessage(each.getClass().getSimpleName());
            message.setObjectProperty(ScheduledMessage.AMQ_SCHEDULED_DELAY, each);
            producer.send(message);
        }
        MessageConsumer consumer = session.createConsumer(queue);
        List<String> got = Scene.texts(consumer, delays.size());
        Collections.sort(got);
        scene.note("got", got);
    }

    public static void transactions_and_schedules(Scene scene) throws Exception {
        Session session = scene.connect().createSession(true, Session.SESSION_TRANSACTED), other = scene.session();
        Queue queue = session.createQueue(scene.own("Q"));
        MessageProducer producer = session.createProducer(queue);
        for (String each : List.of("rolled back", "committed")) {
            Message message = session.createTextMessage(each);
            message.setLongProperty(ScheduledMessage.AMQ_SCHEDULED_DELAY, 200);
            producer.send(message);
            if (each.equals("committed")) {
                session.commit();
            } else {
                session.rollback();
            }
        }
        MessageConsumer consumer = other.createConsumer(queue);
        Message got = consumer.receive(Scene.PATIENCE);
        scene.note("got", Scene.text(got));
        scene.note("properties", new TreeSet<>(Messages.properties(got).keySet()));
        scene.note("rest", Scene.rest(consumer));
    }

    public static void repeated_messages_have_ids_of_their_own(Scene scene) throws Exception {
        Session session = scene.session();
        MessageConsumer consumer = session.createConsumer(session.createTopic(scene.own("T")));
        Message message = session.createTextMessage("again");
        message.setLongProperty(ScheduledMessage.AMQ_SCHEDULED_PERIOD, 150);
        message.setIntProperty(ScheduledMessage.AMQ_SCHEDULED_REPEAT, 2);
        session.createProducer(session.createTopic(scene.own("T"))).send(message);
        TreeSet<String> ids = new TreeSet<>();
        for (int i = 0; i < 3; i++) {
            ids.add(consumer.receive(Scene.PATIENCE).getJMSMessageID());
        }
        scene.note("ids", ids.size());
        scene.note("rest", Scene.rest(consumer));
    }

    public static void requests_to_the_scheduler(Scene scene) throws Exception {
        Session session = scene.session();
        MessageProducer producer = session.createProducer(session.createQueue(scene.own("Q")));
        for (int i = 0; i < 3; i++) {
            Message message = session.createTextMessage(scene.own("" + i));
            message.setLongProperty(ScheduledMessage.AMQ_SCHEDULED_DELAY, 60_000 + i * 1000);
            producer.send(message);
        }
        Queue replies = session.createTemporaryQueue();
        MessageConsumer consumer = session.createConsumer(replies);
        Map<String, String> jobs = scheduled(scene, session, replies, consumer, 3);
        scene.note("jobs", new TreeSet<>(jobs.keySet()));
        request(session, null, Map.of(ScheduledMessage.AMQ_SCHEDULER_ACTION, "REMOVE", "scheduledJobId", jobs.get(scene.own("0"))));
        scene.note("one removed", new TreeSet<>(scheduled(scene, session, replies, consumer, 2).keySet()));
        for (Map<String, String> wrong : List.of(Map.of(ScheduledMessage.AMQ_SCHEDULER_ACTION, "NONSENSE"), Map.of("nothing", "here"),
                                                 Map.of(ScheduledMessage.AMQ_SCHEDULER_ACTION, "REMOVE", "scheduledJobId", "none"))) {
            try {
                request(session, null, wrong);
            } catch (JMSException refused) {
                // Sluice says what is wrong with it; ActiveMQ ignores it
            }
        }
        scene.note("after wrong ones", new TreeSet<>(scheduled(scene, session, replies, consumer, 2).keySet()));
    }

    /** The ids of this scenario's jobs by their texts. Other scenarios have jobs at the same broker. */
    private static Map<String, String> scheduled(Scene scene, Session session, Queue replies, MessageConsumer consumer, int count) throws JMSException {
        Map<String, String> found = new TreeMap<>();
        for (long end = System.nanoTime() + Scene.PATIENCE * 1_000_000; found.size() != count && System.nanoTime() < end; ) {
            found.clear();
            request(session, replies, Map.of(ScheduledMessage.AMQ_SCHEDULER_ACTION, ScheduledMessage.AMQ_SCHEDULER_ACTION_BROWSE));
            for (Message each; (each = consumer.receive(Scene.QUIET)) != null; ) {
                if (Scene.text(each).startsWith(scene.name)) {
                    found.put(Scene.text(each), each.getStringProperty("scheduledJobId"));
                }
            }
        }
        return found;
    }

    private static void request(Session session, Queue replies, Map<String, String> properties) throws JMSException {
        Message request = session.createMessage();
        for (Map.Entry<String, String> each : properties.entrySet()) {
            request.setStringProperty(each.getKey(), each.getValue());
        }
        request.setJMSReplyTo(replies);
        session.createProducer(session.createTopic(ScheduledMessage.AMQ_SCHEDULER_MANAGEMENT_DESTINATION)).send(request);
    }
}
