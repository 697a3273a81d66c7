import java.util.List;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Message;
import javax.jms.Session;
import javax.jms.Topic;
import org.apache.activemq.ActiveMQConnection;

/** Subscribers, durable ones among them. */
public class Topics {
    public static void two_subscribers(Scene scene) throws Exception {
        Session session = scene.session();
        Topic topic = session.createTopic(scene.own("T"));
        session.createProducer(topic).send(session.createTextMessage("before"));
        MessageConsumer one = session.createConsumer(topic), two = scene.session().createConsumer(topic);
        session.createProducer(topic).send(session.createTextMessage("x"));
        scene.note("one", Scene.texts(one, 1));
        scene.note("two", Scene.texts(two, 1));
        scene.note("rest", Scene.rest(one));
    }

    public static void no_local(Scene scene) throws Exception {
        Session session = scene.session();
        Topic topic = session.createTopic(scene.own("T"));
        MessageConsumer consumer = session.createConsumer(topic, null, true);
        session.createProducer(topic).send(session.createTextMessage("mine"));
        Session other = scene.session();
        other.createProducer(topic).send(other.createTextMessage("theirs"));
        scene.note("got", Scene.texts(consumer, 1));
        scene.note("rest", Scene.rest(consumer));
    }

    public static void names_of_durable_subscriptions(Scene scene) throws Exception {
        for (String name : List.of("", " ", "a b", ":", "%", "\u20ac", "a/b", "a,b")) {
            ActiveMQConnection first = scene.connectAs(scene.own("id"));
            Session session = first.createSession(false, Session.AUTO_ACKNOWLEDGE);
            Topic topic = session.createTopic(scene.own("T" + Integer.toHexString(name.hashCode())));
            scene.attempt("subscribe as '" + name + "'", () -> session.createDurableSubscriber(topic, name));
            first.close();
            Session sending = scene.session();
            send(sending, sending.createProducer(topic), 1);
            Session again = scene.connectAs(scene.own("id")).createSession(false, Session.AUTO_ACKNOWLEDGE);
            MessageConsumer back = again.createDurableSubscriber(topic, name);
            scene.note("kept for '" + name + "'", Scene.texts(back, 1));
            back.close();
            scene.attempt("unsubscribe '" + name + "'", () -> again.unsubscribe(name));
            scene.close();
        }
    }

    public static void durable_away_and_back(Scene scene) throws Exception {
        ActiveMQConnection connection = scene.connectAs(scene.own("id"));
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Topic topic = session.createTopic(scene.own("T"));
        MessageConsumer first = session.createDurableSubscriber(topic, "sub", "n > 1", false);
        Session sending = scene.session();
        MessageProducer producer = sending.createProducer(topic);
        send(sending, producer, 1, 2);
        scene.note("there", Scene.texts(first, 1));
        scene.attempt("unsubscribe while active", () -> session.unsubscribe("sub"));
        connection.close();
        send(sending, producer, 0, 3, 4);
        ActiveMQConnection again = scene.connectAs(scene.own("id"));
        Session back = again.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer second = back.createDurableSubscriber(topic, "sub", "n > 1", false);
        scene.note("back", Scene.texts(second, 2));
        scene.note("rest", Scene.rest(second));
        second.close();
        send(sending, producer, 5);
        MessageConsumer other = back.createDurableSubscriber(topic, "sub", "n < 9", false);
        scene.note("with another selector", Scene.rest(other));
        other.close();
        scene.attempt("unsubscribe", () -> back.unsubscribe("sub"));
        scene.attempt("unsubscribe again", () -> back.unsubscribe("sub"));
        send(sending, producer, 6);
        scene.note("new", Scene.rest(back.createDurableSubscriber(topic, "sub", "n > 1", false)));
    }

    private static void send(Session session, MessageProducer producer, int... numbers) throws Exception {
        for (int each : numbers) {
            Message message = session.createTextMessage("" + each);
            message.setIntProperty("n", each);
            producer.send(message);
        }
    }

    public static void durable_subscribers_need_their_name(Scene scene) throws Exception {
        ActiveMQConnection connection = scene.connectAs(scene.own("id"));
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Topic topic = session.createTopic(scene.own("T"));
        session.createDurableSubscriber(topic, "sub");
        scene.attempt("twice", () -> session.createDurableSubscriber(topic, "sub"));
        scene.attempt("without a client id", () -> scene.session().createDurableSubscriber(topic, "sub"));
        scene.attempt("unknown", () -> session.unsubscribe("other"));
    }

    public static void durable_subscribers_share_nothing(Scene scene) throws Exception {
        Session sending = scene.session();
        Topic topic = sending.createTopic(scene.own("T"));
        for (String each : List.of("a", "b")) {
            ActiveMQConnection connection = scene.connectAs(scene.own(each));
            connection.createSession(false, Session.AUTO_ACKNOWLEDGE).createDurableSubscriber(topic, "sub");
            connection.close();
        }
        send(sending, sending.createProducer(topic), 1, 2, 3);
        for (String each : List.of("a", "b")) {
            ActiveMQConnection connection = scene.connectAs(scene.own(each));
            Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
            MessageConsumer consumer = session.createDurableSubscriber(topic, "sub");
            consumer.receive(Scene.PATIENCE).acknowledge();
            scene.note(each, Scene.texts(consumer, 2));
            connection.close();
            Session after = scene.connectAs(scene.own(each)).createSession(false, Session.AUTO_ACKNOWLEDGE);
            scene.note(each + " again", Scene.rest(after.createDurableSubscriber(topic, "sub")));
        }
    }
}
