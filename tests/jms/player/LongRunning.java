import java.util.Arrays;
import java.util.Random;
import javax.jms.BytesMessage;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ScheduledMessage;

/** What takes a minute or much memory: not part of the tests, only of the program. */
public class LongRunning {
    private static final int LARGE = 50_000_000;

    public static void idle_connections(Scene scene) throws Exception {
        ActiveMQConnection connection = scene.connect();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Queue queue = session.createQueue(scene.own("Q"));
        MessageConsumer consumer = session.createConsumer(queue);
        MessageProducer producer = session.createProducer(queue);
        ActiveMQConnection lively = scene.connect("wireFormat.maxInactivityDuration=1500&wireFormat.maxInactivityDurationInitalDelay=500");
        Thread.sleep(35_000);
        producer.send(session.createTextMessage("after a while"));
        scene.note("got", Scene.texts(consumer, 1));
        scene.note("failed", connection.isTransportFailed() || lively.isTransportFailed());
    }

    public static void schedules_of_cron(Scene scene) throws Exception {
        Session session = scene.session();
        Queue queue = session.createQueue(scene.own("Q"));
        MessageConsumer consumer = session.createConsumer(queue);
        Message message = session.createTextMessage("every minute");
        message.setStringProperty(ScheduledMessage.AMQ_SCHEDULED_CRON, "* * * * *");
        session.createProducer(queue).send(message);
        Message first = consumer.receive(65_000);
        scene.note("at the minute", first != null && System.currentTimeMillis() % 60_000 < 5_000);
        scene.note("rest", Scene.rest(consumer));
    }

    public static void fifty_megabytes(Scene scene) throws Exception {
        Session session = scene.session();
        Queue queue = session.createQueue(scene.own("Q"));
        byte[] content = new byte[LARGE];
        new Random(1).nextBytes(content);
        BytesMessage sent = session.createBytesMessage();
        sent.writeBytes(content);
        session.createProducer(queue).send(sent);
        sent.clearBody();
        BytesMessage got = (BytesMessage) session.createConsumer(queue).receive(4 * Scene.PATIENCE);
        byte[] read = new byte[LARGE];
        scene.note("read", got.readBytes(read));
        scene.note("the same", Arrays.equals(content, read));
    }
}
