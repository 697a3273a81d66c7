import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.jms.BytesMessage;
import javax.jms.IllegalStateException;
import javax.jms.JMSException;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.Topic;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.ActiveMQMessageProducer;
import org.apache.activemq.command.ActiveMQTextMessage;
import org.apache.activemq.command.MessageId;

/** What a connector allows, and clocks that are wrong. */
public class Limits {
    private static ActiveMQConnection narrow(Scene scene, String clientId) throws Exception {
        return scene.started(new ActiveMQConnectionFactory(scene.brokers.narrowTcp()), clientId);
    }

    public static void a_message_too_long_is_refused_and_the_connection_lives_on(Scene scene) throws Exception {
        Session session = narrow(scene, null).createSession(false, Session.AUTO_ACKNOWLEDGE);
        Queue queue = session.createQueue(scene.own("Q"));
        MessageProducer producer = session.createProducer(queue);
        for (int length : new int[] {90_000, 110_000}) {
            BytesMessage message = session.createBytesMessage();
            message.writeBytes(new byte[length]);
            scene.attempt("send " + length, () -> producer.send(message));
        }
        scene.attempt("send after it", () -> producer.send(session.createTextMessage("after it")));
        scene.note("got", Scene.texts(session.createConsumer(queue), 2));
    }

    public static void a_client_id_is_taken_over(Scene scene) throws Exception {
        ActiveMQConnection first = narrow(scene, scene.own("id"));
        CountDownLatch ended = new CountDownLatch(1);
        first.setExceptionListener(failure -> ended.countDown());
        Session session = first.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createDurableSubscriber(session.createTopic(scene.own("T")), "sub");
        Session sending = scene.session();
        sending.createProducer(sending.createTopic(scene.own("T"))).send(sending.createTextMessage("x"));
        scene.note("got", Scene.texts(consumer, 1));
        Session second = narrow(scene, scene.own("id")).createSession(false, Session.AUTO_ACKNOWLEDGE);
        scene.note("the first ended", ended.await(Scene.PATIENCE, TimeUnit.MILLISECONDS));
        MessageConsumer again = takenOver(second, second.createTopic(scene.own("T")));
        scene.note("again", Scene.texts(again, 1));
        awaitClosed(session);
        scene.attempt("the first goes on", () -> session.createProducer(session.createQueue(scene.own("Q"))));
    }

    /** The subscription once the broker has removed its former consumer: ActiveMQ closes the former connection before. */
    private static MessageConsumer takenOver(Session session, Topic topic) throws Exception {
        long end = System.currentTimeMillis() + Scene.PATIENCE;
        while (true) {
            try {
                return session.createDurableSubscriber(topic, "sub");
            } catch (JMSException refused) {
                if (!String.valueOf(refused.getMessage()).contains("in use") || System.currentTimeMillis() > end) {
                    throw refused;
                }
                Thread.sleep(20);
            }
        }
    }

    /** Wait until the client has closed a session, which it does after it has told the listener of the connection. */
    private static void awaitClosed(Session session) throws Exception {
        long end = System.currentTimeMillis() + Scene.PATIENCE;
        while (System.currentTimeMillis() < end) {
            try {
                session.getTransacted();
            } catch (IllegalStateException closed) {
                return;
            }
            Thread.sleep(20);
        }
    }

    /** Send a message as a client sends it whose clock differs by so many milliseconds. */
    private static void send(Scene scene, String text, long difference, long timeToLive) throws Exception {
        ActiveMQConnection connection = scene.connect();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        var producer = (ActiveMQMessageProducer) session.createProducer(session.createQueue(scene.own("Q")));
        ActiveMQTextMessage message = new ActiveMQTextMessage();
        message.setText(text);
        message.setProducerId(new MessageId(connection.getConnectionInfo().getConnectionId() + ":1:1:1").getProducerId());
        message.setMessageId(new MessageId(message.getProducerId(), 1));
        message.setDestination(new org.apache.activemq.command.ActiveMQQueue(scene.own("Q")));
        message.setPersistent(true);
        message.setTimestamp(System.currentTimeMillis() + difference);
        message.setExpiration(message.getTimestamp() + timeToLive);
        connection.syncSendPacket(message);
        producer.close();
    }

    public static void clocks_of_producers_that_are_wrong(Scene scene) throws Exception {
        send(scene, "an hour slow, for a minute", -3_600_000, 60_000);
        send(scene, "an hour slow, for two", -3_600_000, 7_200_000);
        send(scene, "an hour fast, for a second", 3_600_000, 1_000);
        Thread.sleep(1_100);
        Session session = scene.session();
        MessageConsumer consumer = session.createConsumer(session.createQueue(scene.own("Q")));
        scene.note("got", Scene.rest(consumer));
    }
}
