import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.TreeSet;
import javax.jms.ConnectionMetaData;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnection;

/** Logins, client ids, what a connection is told. */
public class Connections {
    public static void passwords(Scene scene) {
        scene.attempt("right", () -> scene.factory("").createConnection("ada", "lovelace").start());
        scene.attempt("wrong", () -> scene.factory("").createConnection("ada", "byron").start());
        scene.attempt("unknown", () -> scene.factory("").createConnection("eve", "").start());
        scene.attempt("anonymous", () -> scene.factory("").createConnection().start());
    }

    public static void client_ids(Scene scene) throws Exception {
        ActiveMQConnection first = scene.connectAs(scene.own("id"));
        scene.attempt("in use", () -> scene.connectAs(scene.own("id")));
        first.close();
        scene.attempt("free again", () -> scene.connectAs(scene.own("id")));
        ActiveMQConnection late = scene.connect();
        late.createSession(false, Session.AUTO_ACKNOWLEDGE);
        scene.attempt("too late", () -> late.setClientID(scene.own("other")));
    }

    public static void metadata(Scene scene) throws Exception {
        ActiveMQConnection connection = scene.connect();
        ConnectionMetaData metadata = connection.getMetaData();
        scene.note("provider", metadata.getJMSProviderName() + " " + metadata.getJMSVersion());
        scene.note("properties", new TreeSet<>(Collections.list(metadata.getJMSXPropertyNames())).toString());
        scene.note("broker", connection.getBrokerName());
        scene.note("wire format", connection.getProtocolVersion());
    }

    public static void sends_without_waiting(Scene scene) throws Exception {
        for (String options : List.of("jms.useAsyncSend=true", "jms.producerWindowSize=2000&jms.useAsyncSend=true",
                                      "jms.alwaysSyncSend=true", "jms.dispatchAsync=false")) {
            Session session = scene.connect(options).createSession(false, Session.AUTO_ACKNOWLEDGE);
            MessageProducer producer = session.createProducer(session.createQueue(scene.own("Q")));
            List<String> sent = new ArrayList<>();
            for (int i = 0; i < 50; i++) {
                sent.add(i + "x".repeat(200));
                producer.send(session.createTextMessage(sent.get(i)));
            }
            var consumer = session.createConsumer(session.createQueue(scene.own("Q")));
            scene.note(options, Scene.texts(consumer, 50).equals(sent));
            consumer.close();
        }
    }

    public static void a_closed_connection_is_gone(Scene scene) throws Exception {
        ActiveMQConnection connection = scene.connect();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(session.createQueue(scene.own("Q")));
        producer.send(session.createTextMessage("kept"));
        session.createConsumer(session.createQueue(scene.own("Q")));
        connection.close();
        scene.attempt("send", () -> producer.send(session.createTextMessage("lost")));
        Session other = scene.session();
        scene.note("kept", Scene.texts(other.createConsumer(other.createQueue(scene.own("Q"))), 1));
    }
}
