import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import javax.jms.TextMessage;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;

/** What one scenario is given: its broker, names of its own, and a place for what it sees. */
final class Scene implements AutoCloseable {
    /** Milliseconds in which a message that is there comes. */
    static final long PATIENCE = 15_000;
    /** Milliseconds after which a message that has not come does not come. */
    static final long QUIET = 400;

    /** What a scenario does that may fail. */
    interface Attempt {
        void run() throws Exception;
    }

    final String name;
    final Brokers brokers;
    final Map<String, Object> notes = Collections.synchronizedMap(new LinkedHashMap<>());
    private final List<Connection> connections = new java.util.concurrent.CopyOnWriteArrayList<>();

    Scene(String name, Brokers brokers) {
        this.name = name;
        this.brokers = brokers;
    }

    /** The name of a queue or topic that no other scenario has. */
    String own(String what) {
        return name + "." + what;
    }

    ActiveMQConnectionFactory factory(String options) {
        String separator = options.isEmpty() ? "" : "?";
        return new ActiveMQConnectionFactory(brokers.tcp() + separator + options);
    }

    ActiveMQConnection connect() throws JMSException {
        return connect("");
    }

    /** A started connection with these options of the client; it ends with the scenario. */
    ActiveMQConnection connect(String options) throws JMSException {
        return started(factory(options), null);
    }

    ActiveMQConnection connectAs(String clientId) throws JMSException {
        return started(factory(""), clientId);
    }

    ActiveMQConnection started(ActiveMQConnectionFactory factory, String clientId) throws JMSException {
        ActiveMQConnection connection = (ActiveMQConnection) factory.createConnection();
        connections.add(connection);
        if (clientId != null) {
            connection.setClientID(clientId);
        }
        connection.start();
        return connection;
    }

    Session session() throws JMSException {
        return connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
    }

    void note(String what, Object seen) {
        notes.put(what, seen);
    }

    /** Note what becomes of an attempt: "done", or the class of the exception. */
    void attempt(String what, Attempt attempt) {
        try {
            attempt.run();
            note(what, "done");
        } catch (Exception refused) {
            note(what, refused.getClass().getSimpleName());
        }
    }

    /** The texts of the next messages, and how many came less than were asked for. */
    static List<String> texts(MessageConsumer consumer, int count) throws JMSException {
        List<String> found = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            Message message = consumer.receive(PATIENCE);
            if (message == null) {
                found.add("nothing");
                break;
            }
            found.add(text(message));
        }
        return found;
    }

    /** The texts of all messages that come before it is quiet. */
    static List<String> rest(MessageConsumer consumer) throws JMSException {
        List<String> found = new ArrayList<>();
        for (Message message; (message = consumer.receive(QUIET)) != null; ) {
            found.add(text(message));
        }
        return found;
    }

    static String text(Message message) throws JMSException {
        return message instanceof TextMessage text ? text.getText() : message.getClass().getSimpleName();
    }

    static int deliveryCount(Message message) throws JMSException {
        return message.getIntProperty("JMSXDeliveryCount");
    }

    @Override
    public void close() {
        for (Connection each : connections) {
            try {
                each.close();
            } catch (JMSException ended) {
                // it ended before
            }
        }
    }
}
