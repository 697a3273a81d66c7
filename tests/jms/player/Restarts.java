import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TransactionRolledBackException;
import javax.jms.XASession;
import javax.transaction.xa.XAException;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.ActiveMQXAConnection;
import org.apache.activemq.ActiveMQXAConnectionFactory;

/** The broker is killed and started again; played one after the other. */
public class Restarts {
    record Branch(String name) implements Xid {
        @Override
        public int getFormatId() {
            return 77;
        }

        @Override
        public byte[] getGlobalTransactionId() {
            return name.getBytes();
        }

        @Override
        public byte[] getBranchQualifier() {
            return "branch".getBytes();
        }
    }

    private static ActiveMQXAConnection xa(Scene scene) throws JMSException {
        ActiveMQXAConnection connection = (ActiveMQXAConnection) new ActiveMQXAConnectionFactory(scene.brokers.tcp()).createXAConnection();
        connection.start();
        return connection;
    }

    /** Those of a scenario that recover lists. */
    private static TreeSet<String> prepared(Scene scene, XAResource resource) throws XAException {
        TreeSet<String> found = new TreeSet<>();
        for (Xid each : resource.recover(XAResource.TMSTARTRSCAN)) {
            found.add(new String(each.getGlobalTransactionId()));
        }
        found.removeIf(each -> !each.startsWith(scene.name));
        return found;
    }

    private static Xid begin(Scene scene, XAResource resource, String what) throws XAException {
        Xid branch = new Branch(scene.own(what));
        resource.start(branch, XAResource.TMNOFLAGS);
        return branch;
    }

    private static void send(XASession session, String queue, String text) throws JMSException {
        session.createProducer(session.createQueue(queue)).send(session.createTextMessage(text));
    }

    private static List<String> left(Scene scene, String queue) throws JMSException {
        Session session = scene.session();
        MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
        List<String> found = Scene.rest(consumer);
        consumer.close();
        return found;
    }

    public static void branches_in_two_phases(Scene scene) throws Exception {
        ActiveMQXAConnection connection = xa(scene);
        XASession session = connection.createXASession();
        XAResource resource = session.getXAResource();
        Xid branch = begin(scene, resource, "a");
        send(session, scene.own("Q"), "a");
        resource.end(branch, XAResource.TMSUCCESS);
        scene.note("vote", resource.prepare(branch));
        scene.note("prepared", prepared(scene, resource));
        scene.note("not yet", left(scene, scene.own("Q")));
        resource.commit(branch, false);
        scene.note("committed", left(scene, scene.own("Q")));
        branch = begin(scene, resource, "b");
        send(session, scene.own("Q"), "b");
        resource.end(branch, XAResource.TMSUCCESS);
        resource.commit(branch, true);
        scene.note("one phase", left(scene, scene.own("Q")));
        branch = begin(scene, resource, "c");
        send(session, scene.own("Q"), "c");
        resource.end(branch, XAResource.TMSUCCESS);
        resource.prepare(branch);
        resource.rollback(branch);
        scene.note("rolled back", left(scene, scene.own("Q")));
        branch = begin(scene, resource, "d");
        resource.end(branch, XAResource.TMSUCCESS);
        scene.note("nothing done", resource.prepare(branch));
        Xid unknown = new Branch(scene.own("unknown"));
        scene.attempt("commit of an unknown one", () -> resource.commit(unknown, false));
        scene.note("left", prepared(scene, resource));
        connection.close();
    }

    public static void prepared_branches_survive(Scene scene) throws Exception {
        Session plain = scene.session();
        plain.createProducer(plain.createQueue(scene.own("Q"))).send(plain.createTextMessage("consumed"));
        ActiveMQXAConnection connection = xa(scene);
        for (String each : List.of("commit", "rollback")) {
            XASession session = connection.createXASession();
            XAResource resource = session.getXAResource();
            Xid branch = begin(scene, resource, each);
            send(session, scene.own("Q2"), each);
            if (each.equals("rollback")) {
                scene.note("got", Scene.texts(session.createConsumer(session.createQueue(scene.own("Q"))), 1));
            }
            resource.end(branch, XAResource.TMSUCCESS);
            scene.note("vote " + each, resource.prepare(branch));
        }
        XASession open = connection.createXASession();
        begin(scene, open.getXAResource(), "open");
        send(open, scene.own("Q2"), "open");
        Brokers.killAndStart();
        ActiveMQXAConnection again = xa(scene);
        XASession session = again.createXASession();
        XAResource resource = session.getXAResource();
        scene.note("recovered", prepared(scene, resource));
        scene.note("before", left(scene, scene.own("Q2")));
        resource.commit(new Branch(scene.own("commit")), false);
        resource.rollback(new Branch(scene.own("rollback")));
        scene.note("after", left(scene, scene.own("Q2")));
        scene.note("again", left(scene, scene.own("Q")));
        scene.note("none left", prepared(scene, resource));
        again.close();
    }

    public static void failover_loses_and_doubles_nothing(Scene scene) throws Exception {
        int count = 600;
        ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory(
            "failover:(" + scene.brokers.tcp() + ")?initialReconnectDelay=50&maxReconnectDelay=200&jms.redeliveryPolicy.initialRedeliveryDelay=5");
        Set<String> seen = new HashSet<>();
        List<String> doubled = new ArrayList<>();
        AtomicBoolean failed = new AtomicBoolean();
        Connection connection = scene.started(factory, null);
        Thread producing = new Thread(() -> {
            try {
                Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
                MessageProducer producer = session.createProducer(session.createQueue(scene.own("Q")));
                for (int i = 0; i < count; ) {
                    try {
                        for (int j = i; j < i + 10; j++) {
                            producer.send(session.createTextMessage("" + j));
                        }
                        session.commit();
                        i += 10;
                    } catch (TransactionRolledBackException again) {
                        session.rollback();
                    }
                }
            } catch (JMSException error) {
                error.printStackTrace();
                failed.set(true);
            }
        });
        producing.start();
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(session.createQueue(scene.own("Q")));
        boolean killed = false;
        List<String> taken = new ArrayList<>();
        while (seen.size() < count) {
            try {
                var message = consumer.receive(Scene.PATIENCE);
                if (message == null) {
                    break;
                }
                taken.add(Scene.text(message));
                if (taken.size() == 5 || seen.size() + taken.size() >= count) {
                    session.commit();
                    for (String each : taken) {
                        if (!seen.add(each)) {
                            doubled.add(each);
                        }
                    }
                    taken.clear();
                }
                if (!killed && seen.size() >= 200) {
                    killed = true;
                    Brokers.killAndStart();
                }
            } catch (TransactionRolledBackException again) {
                session.rollback();
                taken.clear();
            }
        }
        producing.join(Scene.PATIENCE);
        scene.note("all", seen.size());
        // a commit in doubt is said to be rolled back: what it sent may be there, and is sent again
        scene.note("doubled at most one transaction", doubled.size() <= 10);
        scene.note("rest", Scene.rest(consumer).size());
        scene.note("producer failed", failed.get());
    }

    public static void failover_resends_what_was_in_doubt_once(Scene scene) throws Exception {
        ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory(
            "failover:(" + scene.brokers.tcp() + ")?initialReconnectDelay=50&maxReconnectDelay=200&jms.useAsyncSend=false");
        Connection connection = scene.started(factory, null);
        Thread producing = new Thread(() -> {
            try {
                Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
                MessageProducer producer = session.createProducer(session.createQueue(scene.own("Q")));
                for (int i = 0; i < 400; i++) {
                    producer.send(session.createTextMessage("" + i));
                }
            } catch (JMSException error) {
                error.printStackTrace();
            }
        });
        producing.start();
        Thread.sleep(100);
        Brokers.killAndStart();
        producing.join(60_000);
        Session session = scene.session();
        List<String> got = Scene.rest(session.createConsumer(session.createQueue(scene.own("Q"))));
        scene.note("different", new HashSet<>(got).size());
        scene.note("got", got.size());
    }

    public static void messages_and_subscriptions_survive(Scene scene) throws Exception {
        Session session = scene.connectAs(scene.own("id")).createSession(false, Session.AUTO_ACKNOWLEDGE);
        session.createDurableSubscriber(session.createTopic(scene.own("T")), "sub").close();
        MessageProducer producer = session.createProducer(null);
        var kept = session.createTextMessage("kept");
        kept.setIntProperty("n", 5);
        producer.send(session.createQueue(scene.own("Q")), kept);
        producer.send(session.createTopic(scene.own("T")), session.createTextMessage("of the topic"));
        producer.send(session.createQueue(scene.own("Q")), session.createTextMessage("lost"), javax.jms.DeliveryMode.NON_PERSISTENT, 4, 0);
        Brokers.killAndStart();
        Session again = scene.connectAs(scene.own("id")).createSession(false, Session.AUTO_ACKNOWLEDGE);
        var got = again.createConsumer(again.createQueue(scene.own("Q")), "n = 5").receive(Scene.PATIENCE);
        scene.note("queue", Arrays.asList(Scene.text(got), Messages.properties(got)));
        scene.note("subscription", Scene.texts(again.createDurableSubscriber(again.createTopic(scene.own("T")), "sub"), 1));
    }
}
