import java.util.ArrayList;
import java.util.List;
import javax.jms.Destination;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.Topic;
import javax.jms.XASession;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;
import org.apache.activemq.ActiveMQXAConnection;
import org.apache.activemq.ActiveMQXAConnectionFactory;

/** XA branches that nothing is killed for. */
public class Branches {
    private static XASession session(Scene scene, String clientId) throws Exception {
        return ((ActiveMQXAConnection) scene.started(new ActiveMQXAConnectionFactory(scene.brokers.tcp()), clientId)).createXASession();
    }

    private static Xid branch(Scene scene, String name) {
        return new Restarts.Branch(scene.own(name));
    }

    private static void send(Session session, Destination destination, String... texts) throws Exception {
        MessageProducer producer = session.createProducer(destination);
        for (String each : texts) {
            producer.send(session.createTextMessage(each));
        }
    }

    private static List<String> states(MessageConsumer consumer, int count) throws Exception {
        List<String> found = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            Message each = consumer.receive(Scene.PATIENCE);
            found.add(Scene.text(each) + " " + each.getJMSRedelivered() + " " + Scene.deliveryCount(each));
        }
        return found;
    }

    public static void suspended_and_resumed(Scene scene) throws Exception {
        XASession session = session(scene, scene.own("id"));
        XAResource resource = session.getXAResource();
        Session plain = scene.session();
        Queue queue = session.createQueue(scene.own("Q"));
        Xid first = branch(scene, "first"), second = branch(scene, "second");
        resource.start(first, XAResource.TMNOFLAGS);
        send(session, queue, "a");
        scene.attempt("suspend", () -> resource.end(first, XAResource.TMSUSPEND));
        scene.attempt("start another", () -> resource.start(second, XAResource.TMNOFLAGS));
        send(session, queue, "of the other");
        scene.attempt("end it", () -> resource.end(second, XAResource.TMSUCCESS));
        scene.attempt("resume", () -> resource.start(first, XAResource.TMRESUME));
        send(session, queue, "b");
        resource.end(first, XAResource.TMSUCCESS);
        scene.attempt("roll the other back", () -> resource.rollback(second));
        scene.note("vote", resource.prepare(first));
        MessageConsumer consumer = plain.createConsumer(queue);
        scene.note("before", Scene.rest(consumer));
        resource.commit(first, false);
        scene.note("after", Scene.texts(consumer, 2));
        scene.note("rest", Scene.rest(consumer));
    }

    public static void failed_and_unknown_ones(Scene scene) throws Exception {
        XASession session = session(scene, scene.own("id"));
        XAResource resource = session.getXAResource();
        Session plain = scene.session();
        Queue queue = session.createQueue(scene.own("Q"));
        send(plain, queue, "a", "b", "c");
        Xid failed = branch(scene, "failed"), once = branch(scene, "once");
        resource.start(failed, XAResource.TMNOFLAGS);
        MessageConsumer consumer = session.createConsumer(queue);
        scene.note("got", Scene.texts(consumer, 2));
        resource.end(failed, XAResource.TMFAIL);
        scene.attempt("rollback", () -> resource.rollback(failed));
        consumer.close();
        resource.start(once, XAResource.TMNOFLAGS);
        scene.note("again", states(session.createConsumer(queue), 3));
        resource.end(once, XAResource.TMSUCCESS);
        scene.attempt("one phase", () -> resource.commit(once, true));
        scene.attempt("commit again", () -> resource.commit(once, false));
        scene.attempt("forget an unknown one", () -> resource.forget(branch(scene, "unknown")));
        scene.note("same manager", resource.isSameRM(session(scene, null).getXAResource()));
    }

    public static void of_durable_subscribers(Scene scene) throws Exception {
        XASession session = session(scene, scene.own("id"));
        XAResource resource = session.getXAResource();
        Session plain = scene.session();
        Topic topic = session.createTopic(scene.own("T"));
        MessageConsumer listener = plain.createConsumer(topic);
        Xid sending = branch(scene, "sending"), failed = branch(scene, "failed"), last = branch(scene, "last");
        resource.start(sending, XAResource.TMNOFLAGS);
        MessageConsumer durable = session.createDurableSubscriber(topic, "sub");
        send(session, topic, "a", "b");
        resource.end(sending, XAResource.TMSUCCESS);
        scene.note("before", Scene.rest(listener));
        resource.prepare(sending);
        resource.commit(sending, false);
        scene.note("after", Scene.texts(listener, 2));
        resource.start(failed, XAResource.TMNOFLAGS);
        scene.note("got", Scene.texts(durable, 1));
        resource.end(failed, XAResource.TMSUCCESS);
        resource.prepare(failed);
        resource.rollback(failed);
        resource.start(last, XAResource.TMNOFLAGS);
        scene.note("again", states(durable, 2));
        resource.end(last, XAResource.TMSUCCESS);
        resource.commit(last, true);
        scene.note("rest", Scene.rest(durable));
    }
}
