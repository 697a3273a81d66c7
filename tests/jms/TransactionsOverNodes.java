import java.util.ArrayList;
import java.util.List;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TextMessage;
import org.apache.activemq.ActiveMQConnectionFactory;

/**
 * Sends numbered messages and consumes them, both in transactions, while nodes are killed. What is rolled back is sent
 * again. Lines: `sent N` up to which number all is committed, `again N` a batch from this number that is repeated, as it
 * was rolled back or its commit is in doubt; `got N`, and `doubt N` where the consumer's commit failed.
 */
public class TransactionsOverNodes {
    static final int BATCH = 10;

    public static void main(String[] arguments) throws Exception {
        int count = Integer.parseInt(arguments[2]);
        Thread consumer = new Thread(() -> consume(arguments[0], arguments[1]));
        consumer.setDaemon(true);
        consumer.start();
        Connection connection = new ActiveMQConnectionFactory(arguments[0]).createConnection();
        connection.start();
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageProducer producer = session.createProducer(session.createQueue(arguments[1]));
        for (int first = 0; first < count; ) {
            try {
                for (int number = first; number < first + BATCH; number++) {
                    producer.send(session.createTextMessage(Integer.toString(number)));
                    Thread.sleep(2); // most of the time a transaction is open
                }
                session.commit();
                first += BATCH;
                say("sent " + first);
            } catch (JMSException failure) {
                say("again " + first);
                rollBack(session);
            }
        }
        consumer.join();
    }

    static void consume(String url, String queue) {
        try {
            Connection connection = new ActiveMQConnectionFactory(url).createConnection();
            connection.start();
            Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
            MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
            while (true) {
                List<String> batch = new ArrayList<>();
                try {
                    for (Message each; batch.size() < BATCH && (each = consumer.receive(200)) != null; ) {
                        batch.add(((TextMessage) each).getText());
                    }
                    session.commit();
                    batch.forEach(each -> say("got " + each));
                } catch (JMSException failure) {
                    batch.forEach(each -> say("doubt " + each));
                    rollBack(session);
                }
            }
        } catch (Exception failure) {
            failure.printStackTrace();
        }
    }

    static void rollBack(Session session) {
        try {
            session.rollback();
        } catch (JMSException failure) {
            say("rollback failed");
        }
    }

    static synchronized void say(String line) {
        System.out.println(line);
    }
}
