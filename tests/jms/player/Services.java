import java.util.ArrayList;
import java.util.List;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ScheduledMessage;
import org.apache.activemq.advisory.DestinationSource;
import org.apache.activemq.command.ActiveMQMessage;
import org.apache.activemq.command.ActiveMQQueue;
import org.apache.activemq.command.ConsumerInfo;
import org.apache.activemq.command.RemoveInfo;

/** What the broker does of itself: schedules, advisories, statistics. */
public class Services {
    public static void delayed_messages(Scene scene) throws Exception {
        Session session = scene.session();
        MessageProducer producer = session.createProducer(session.createQueue(scene.own("Q")));
        Message late = session.createTextMessage("late");
        late.setLongProperty(ScheduledMessage.AMQ_SCHEDULED_DELAY, 700);
        late.setIntProperty("n", 5);
        long began = System.nanoTime();
        producer.send(late);
        producer.send(session.createTextMessage("at once"));
        MessageConsumer consumer = session.createConsumer(session.createQueue(scene.own("Q")));
        scene.note("first", Scene.texts(consumer, 1));
        Message got = consumer.receive(Scene.PATIENCE);
        scene.note("then", Scene.text(got) + " " + got.getObjectProperty("n").getClass().getSimpleName());
        scene.note("after the delay", System.nanoTime() - began > 690_000_000L);
        scene.note("has a job id", got.getStringProperty("scheduledJobId") != null);
    }

    public static void repeated_messages(Scene scene) throws Exception {
        Session session = scene.session();
        MessageProducer producer = session.createProducer(session.createQueue(scene.own("Q")));
        Message often = session.createTextMessage("again");
        often.setLongProperty(ScheduledMessage.AMQ_SCHEDULED_DELAY, 200);
        often.setLongProperty(ScheduledMessage.AMQ_SCHEDULED_PERIOD, 200);
        often.setIntProperty(ScheduledMessage.AMQ_SCHEDULED_REPEAT, 2);
        producer.send(often);
        MessageConsumer consumer = session.createConsumer(session.createQueue(scene.own("Q")));
        scene.note("got", Scene.texts(consumer, 3));
        Thread.sleep(300);
        scene.note("rest", Scene.rest(consumer));
    }

    public static void schedules_that_are_wrong(Scene scene) throws Exception {
        Session session = scene.session();
        MessageProducer producer = session.createProducer(session.createQueue(scene.own("Q")));
        String[][] wrong = {
            {ScheduledMessage.AMQ_SCHEDULED_CRON, "soon"},
            {ScheduledMessage.AMQ_SCHEDULED_CRON, "61 * * * *"},
            {ScheduledMessage.AMQ_SCHEDULED_PERIOD, "often"},
            {ScheduledMessage.AMQ_SCHEDULED_DELAY, "late"},
        };
        for (String[] each : wrong) {
            Message message = session.createTextMessage(each[1]);
            scene.attempt(each[0] + ":" + each[1], () -> {
                message.setStringProperty(each[0], each[1]); // some are refused by the client
                producer.send(message);
            });
        }
        Message often = session.createTextMessage("too often");
        often.setLongProperty(ScheduledMessage.AMQ_SCHEDULED_DELAY, 1000);
        often.setIntProperty(ScheduledMessage.AMQ_SCHEDULED_REPEAT, 1001);
        boolean isRefused = false;
        try {
            producer.send(often);
        } catch (javax.jms.JMSException refused) { // of the class MessageFormatException at ActiveMQ
            isRefused = true;
        }
        scene.note("too often is refused", isRefused);
        producer.send(session.createTextMessage("goes on"));
        scene.note("then", Scene.texts(session.createConsumer(session.createQueue(scene.own("Q"))), 1));
    }

    public static void advisories_of_consumers(Scene scene) throws Exception {
        Session session = scene.session();
        MessageConsumer advisories = session.createConsumer(session.createTopic("ActiveMQ.Advisory.Consumer.Queue." + scene.own("Q")));
        Session other = scene.session();
        MessageConsumer consumer = other.createConsumer(other.createQueue(scene.own("Q")), "n = 1");
        ActiveMQMessage begun = (ActiveMQMessage) advisories.receive(Scene.PATIENCE);
        ConsumerInfo info = (ConsumerInfo) begun.getDataStructure();
        scene.note("selector", info.getSelector());
        scene.note("destination", String.valueOf(info.getDestination()));
        scene.note("consumers", begun.getIntProperty("consumerCount"));
        consumer.close();
        ActiveMQMessage ended = (ActiveMQMessage) advisories.receive(Scene.PATIENCE);
        scene.note("ended", ((RemoveInfo) ended.getDataStructure()).getObjectId().equals(info.getConsumerId()));
        scene.note("consumers then", ended.getIntProperty("consumerCount"));
    }

    public static void destinations_are_found(Scene scene) throws Exception {
        Session session = scene.session();
        session.createProducer(session.createQueue(scene.own("Before"))).send(session.createTextMessage("x"));
        ActiveMQConnection connection = scene.connect();
        DestinationSource source = connection.getDestinationSource();
        session.createProducer(session.createQueue(scene.own("After"))).send(session.createTextMessage("x"));
        long end = System.nanoTime() + 5_000_000_000L;
        List<ActiveMQQueue> wanted = List.of(new ActiveMQQueue(scene.own("Before")), new ActiveMQQueue(scene.own("After")));
        while (!source.getQueues().containsAll(wanted) && System.nanoTime() < end) {
            Thread.sleep(20);
        }
        scene.note("found", source.getQueues().containsAll(wanted));
    }

    public static void statistics(Scene scene) throws Exception {
        Session session = scene.session();
        session.createProducer(session.createQueue(scene.own("Q"))).send(session.createTextMessage("x"));
        var replies = session.createTemporaryQueue();
        MessageConsumer consumer = session.createConsumer(replies);
        Message request = session.createMessage();
        request.setJMSReplyTo(replies);
        session.createProducer(session.createQueue("ActiveMQ.Statistics.Destination." + scene.own("Q"))).send(request);
        MapMessage answer = (MapMessage) consumer.receive(Scene.PATIENCE);
        List<String> seen = new ArrayList<>();
        for (String each : List.of("destinationName", "size", "enqueueCount", "dequeueCount", "consumerCount")) {
            Object value = answer.getObject(each);
            seen.add(each + " " + value.getClass().getSimpleName() + " " + value);
        }
        scene.note("answer", seen);
    }
}
