import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.TreeSet;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.QueueBrowser;
import javax.jms.Session;
import org.apache.activemq.command.ActiveMQQueue;
import org.apache.activemq.command.ActiveMQTopic;

/** Who gets which messages of a queue. */
public class Consumers {
    private static void send(Session session, String queue, String... texts) throws Exception {
        MessageProducer producer = session.createProducer(session.createQueue(queue));
        for (String each : texts) {
            producer.send(session.createTextMessage(each));
        }
        producer.close();
    }

    public static void selectors_compare_by_type(Scene scene) throws Exception {
        Session session = scene.session();
        MessageProducer producer = session.createProducer(session.createQueue(scene.own("Q")));
        for (int i = 1; i <= 12; i++) {
            Message message = session.createTextMessage("" + i);
            message.setIntProperty("n", i);
            message.setDoubleProperty("half", i / 2.0);
            message.setBooleanProperty("even", i % 2 == 0);
            message.setStringProperty("text", "t" + i);
            message.setStringProperty("number", "" + i);
            message.setJMSType(i < 4 ? "low" : "high");
            producer.send(message);
        }
        for (String selector : List.of("n > 10", "half = 2.5", "even AND n < 4", "text LIKE 't_' AND n BETWEEN 6 AND 7",
                                       "JMSType = 'low' AND n IN ('1')", "number = '8'", "n + 1 = 5 OR missing IS NOT NULL",
                                       "NOT (even) AND n > 8", "JMSPriority = 4")) {
            MessageConsumer consumer = session.createConsumer(session.createQueue(scene.own("Q")), selector);
            scene.note(selector, Scene.rest(consumer));
            consumer.close();
        }
        scene.attempt("invalid", () -> session.createConsumer(session.createQueue(scene.own("Q")), "n >"));
    }

    public static void browsers(Scene scene) throws Exception {
        Session session = scene.session();
        send(session, scene.own("Q"), "a", "b", "c");
        QueueBrowser browser = session.createBrowser(session.createQueue(scene.own("Q")));
        scene.note("all", browsed(browser));
        scene.note("again", browsed(browser));
        browser.close();
        MessageConsumer consumer = scene.session().createConsumer(new ActiveMQQueue(scene.own("Q?consumer.prefetchSize=1")));
        scene.note("consumed", Scene.texts(consumer, 1));
        Thread.sleep(Scene.QUIET); // its acknowledgement came on another connection
        scene.note("left", browsed(session.createBrowser(session.createQueue(scene.own("Q")))));
        scene.note("of none", browsed(session.createBrowser(session.createQueue(scene.own("Empty")))));
        scene.note("then", Scene.texts(consumer, 2));
    }

    private static List<String> browsed(QueueBrowser browser) throws Exception {
        List<String> found = new ArrayList<>();
        for (Enumeration<?> each = browser.getEnumeration(); each.hasMoreElements(); ) {
            found.add(Scene.text((Message) each.nextElement()));
        }
        return found;
    }

    public static void prefetch_of_zero(Scene scene) throws Exception {
        Session session = scene.connect("jms.prefetchPolicy.all=0").createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(session.createQueue(scene.own("Q")));
        scene.note("no wait, none there", String.valueOf(consumer.receiveNoWait()));
        scene.note("timeout", String.valueOf(consumer.receive(200)));
        Session other = scene.session();
        send(other, scene.own("Q"), "a", "b", "c", "d");
        scene.note("asked for", Scene.texts(consumer, 1));
        scene.note("no wait", Scene.text(consumer.receiveNoWait()));
        scene.note("others have the rest", Scene.texts(other.createConsumer(other.createQueue(scene.own("Q"))), 2));
    }

    public static void receive_without_waiting(Scene scene) throws Exception {
        Session session = scene.session();
        MessageConsumer consumer = session.createConsumer(session.createQueue(scene.own("Q")));
        scene.note("none", String.valueOf(consumer.receiveNoWait()));
        scene.note("timeout", String.valueOf(consumer.receive(100)));
        send(session, scene.own("Q"), "a");
        scene.note("waits", Scene.texts(consumer, 1));
    }

    public static void competing_with_a_prefetch_of_one(Scene scene) throws Exception {
        Session slow = scene.connect().createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer holding = slow.createConsumer(new ActiveMQQueue(scene.own("Q?consumer.prefetchSize=1")));
        List<MessageConsumer> others = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            others.add(scene.session().createConsumer(new ActiveMQQueue(scene.own("Q?consumer.prefetchSize=1"))));
        }
        String[] texts = new String[30];
        for (int i = 0; i < texts.length; i++) {
            texts[i] = String.format("%02d", i);
        }
        send(scene.session(), scene.own("Q"), texts);
        List<String> found = new ArrayList<>();
        for (int before = -1; before < found.size(); ) {
            before = found.size();
            for (MessageConsumer each : others) {
                found.addAll(Scene.rest(each));
            }
        }
        scene.note("others", new TreeSet<>(found).size());
        scene.note("held", Scene.rest(holding).size());
    }

    public static void groups(Scene scene) throws Exception {
        Session sending = scene.session();
        MessageProducer producer = sending.createProducer(sending.createQueue(scene.own("Q")));
        Session one = scene.session(), two = scene.session();
        MessageConsumer first = one.createConsumer(one.createQueue(scene.own("Q")));
        MessageConsumer second = two.createConsumer(two.createQueue(scene.own("Q")));
        for (int i = 0; i < 6; i++) {
            Message message = sending.createTextMessage("g" + i);
            message.setStringProperty("JMSXGroupID", "g");
            producer.send(message);
        }
        List<String> ones = Scene.rest(first), twos = Scene.rest(second);
        scene.note("together", ones.size() + twos.size());
        scene.note("at one", ones.isEmpty() != twos.isEmpty());
        (ones.isEmpty() ? second : first).close();
        Message message = sending.createTextMessage("later");
        message.setStringProperty("JMSXGroupID", "g");
        producer.send(message);
        Message later = (ones.isEmpty() ? first : second).receive(Scene.PATIENCE);
        scene.note("the other one after it", Scene.text(later));
        scene.note("first of the group", later.getBooleanProperty("JMSXGroupFirstForConsumer"));
        Message end = sending.createTextMessage("end");
        end.setStringProperty("JMSXGroupID", "g");
        end.setIntProperty("JMSXGroupSeq", -1);
        producer.send(end);
        scene.note("closed", Scene.text((ones.isEmpty() ? first : second).receive(Scene.PATIENCE)));
    }

    public static void exclusive_consumers(Scene scene) throws Exception {
        Session sending = scene.session(), one = scene.session(), two = scene.session();
        MessageConsumer first = one.createConsumer(new ActiveMQQueue(scene.own("Q?consumer.exclusive=true")));
        MessageConsumer second = two.createConsumer(new ActiveMQQueue(scene.own("Q?consumer.exclusive=true")));
        send(sending, scene.own("Q"), "a", "b", "c", "d");
        scene.note("first", Scene.texts(first, 4));
        scene.note("second", Scene.rest(second));
        first.close();
        send(sending, scene.own("Q"), "e");
        scene.note("after it", Scene.texts(second, 1));
    }

    public static void consumer_priority(Scene scene) throws Exception {
        Session sending = scene.session(), one = scene.session(), two = scene.session();
        MessageConsumer low = one.createConsumer(new ActiveMQQueue(scene.own("Q?consumer.priority=1")));
        MessageConsumer high = two.createConsumer(new ActiveMQQueue(scene.own("Q?consumer.priority=9")));
        send(sending, scene.own("Q"), "a", "b", "c");
        scene.note("high", Scene.texts(high, 3));
        scene.note("low", Scene.rest(low));
    }

    public static void virtual_topics(Scene scene) throws Exception {
        Session session = scene.session();
        String topic = "VirtualTopic." + scene.own("T");
        MessageConsumer a = session.createConsumer(session.createQueue("Consumer.A." + topic));
        MessageConsumer b = session.createConsumer(session.createQueue("Consumer.B." + topic));
        MessageConsumer plain = session.createConsumer(session.createTopic(topic));
        session.createProducer(session.createTopic(topic)).send(session.createTextMessage("x"));
        Message got = a.receive(Scene.PATIENCE);
        scene.note("a", Scene.text(got) + " of " + got.getJMSDestination());
        scene.note("b", Scene.texts(b, 1));
        scene.note("plain", Scene.texts(plain, 1));
    }

    public static void wildcards(Scene scene) throws Exception {
        Session session = scene.session();
        MessageConsumer one = session.createConsumer(session.createTopic(scene.own("T.*")));
        MessageConsumer all = session.createConsumer(session.createTopic(scene.own("T.>")));
        MessageConsumer queues = session.createConsumer(session.createQueue(scene.own("Q.*")));
        for (String each : List.of("T.a", "T.a.b", "T")) {
            session.createProducer(new ActiveMQTopic(scene.own(each))).send(session.createTextMessage(each));
        }
        send(session, scene.own("Q.a"), "qa");
        send(session, scene.own("Q.b"), "qb");
        scene.note("one", Scene.rest(one));
        scene.note("all", Scene.rest(all));
        scene.note("queues", new TreeSet<>(Scene.texts(queues, 2)));
    }

    public static void composites(Scene scene) throws Exception {
        Session session = scene.session();
        MessageConsumer topic = session.createConsumer(session.createTopic(scene.own("T")));
        String names = scene.own("A") + "," + scene.own("B") + ",topic://" + scene.own("T");
        session.createProducer(new ActiveMQQueue(names)).send(session.createTextMessage("x"));
        List<String> seen = new ArrayList<>();
        for (String each : List.of("A", "B")) {
            MessageConsumer consumer = session.createConsumer(session.createQueue(scene.own(each)));
            Message got = consumer.receive(Scene.PATIENCE);
            seen.add(Scene.text(got) + " of " + got.getJMSDestination());
            consumer.close();
        }
        scene.note("queues", seen);
        scene.note("topic", Scene.texts(topic, 1));
        MessageConsumer both = session.createConsumer(new ActiveMQQueue(scene.own("A") + "," + scene.own("B")));
        send(session, scene.own("A"), "a");
        send(session, scene.own("B"), "b");
        scene.note("both", new TreeSet<>(Scene.texts(both, 2)));
    }

    public static void listeners_of_many_sessions(Scene scene) throws Exception {
        List<String> seen = Collections.synchronizedList(new ArrayList<>());
        java.util.concurrent.CountDownLatch all = new java.util.concurrent.CountDownLatch(40);
        for (int i = 0; i < 4; i++) {
            Session session = scene.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
            session.createConsumer(session.createQueue(scene.own("Q"))).setMessageListener(message -> {
                try {
                    seen.add(Scene.text(message));
                } catch (javax.jms.JMSException failed) {
                    seen.add(failed.toString());
                }
                all.countDown();
            });
        }
        Session sending = scene.session();
        for (int i = 0; i < 40; i++) {
            send(sending, scene.own("Q"), "" + i);
        }
        all.await(15, java.util.concurrent.TimeUnit.SECONDS);
        scene.note("got", seen.size());
        scene.note("different", new TreeSet<>(seen).size());
    }
}
