import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TemporaryQueue;
import javax.jms.TemporaryTopic;
import javax.jms.TextMessage;
import org.apache.activemq.ActiveMQConnection;

/** Temporary destinations. */
public class Temporary {
    public static void request_and_reply(Scene scene) throws Exception {
        Session asking = scene.session(), answering = scene.session();
        MessageConsumer requests = answering.createConsumer(answering.createQueue(scene.own("Q")));
        TemporaryQueue replies = asking.createTemporaryQueue();
        TextMessage request = asking.createTextMessage("who?");
        request.setJMSReplyTo(replies);
        asking.createProducer(asking.createQueue(scene.own("Q"))).send(request);
        Message got = requests.receive(Scene.PATIENCE);
        Message reply = answering.createTextMessage("me");
        reply.setJMSCorrelationID(got.getJMSMessageID());
        answering.createProducer(null).send(got.getJMSReplyTo(), reply);
        Message answer = asking.createConsumer(replies).receive(Scene.PATIENCE);
        scene.note("answer", Scene.text(answer));
        scene.note("to the request", answer.getJMSCorrelationID().equals(request.getJMSMessageID()));
        scene.note("at", answer.getJMSDestination().equals(replies));
    }

    public static void topics(Scene scene) throws Exception {
        Session session = scene.session(), other = scene.session();
        TemporaryTopic topic = session.createTemporaryTopic();
        MessageConsumer consumer = session.createConsumer(topic);
        other.createProducer(topic).send(other.createTextMessage("x"));
        scene.note("got", Scene.texts(consumer, 1));
    }

    public static void they_go_with_their_connection(Scene scene) throws Exception {
        ActiveMQConnection owner = scene.connect();
        TemporaryQueue queue = owner.createSession(false, Session.AUTO_ACKNOWLEDGE).createTemporaryQueue();
        Session other = scene.session();
        MessageProducer producer = other.createProducer(queue);
        producer.send(other.createTextMessage("x"));
        scene.attempt("consume of another connection", () -> other.createConsumer(queue));
        owner.close();
        Thread.sleep(Scene.QUIET);
        scene.attempt("send after it", () -> producer.send(other.createTextMessage("y")));
    }

    public static void they_can_be_deleted(Scene scene) throws Exception {
        Session session = scene.session();
        TemporaryQueue queue = session.createTemporaryQueue();
        MessageConsumer consumer = session.createConsumer(queue);
        scene.attempt("in use", queue::delete);
        consumer.close();
        scene.attempt("unused", queue::delete);
        scene.attempt("send", () -> session.createProducer(queue).send(session.createTextMessage("x")));
    }
}
