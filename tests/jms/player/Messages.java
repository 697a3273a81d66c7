import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import javax.jms.BytesMessage;
import javax.jms.DeliveryMode;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.ObjectMessage;
import javax.jms.Session;
import javax.jms.StreamMessage;
import javax.jms.TextMessage;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.command.ActiveMQMessage;
import org.apache.activemq.util.ByteSequence;

/** Bodies, properties and headers. */
public class Messages {
    public static void properties_of_every_type(Scene scene) throws Exception {
        Session session = scene.session();
        MessageProducer producer = session.createProducer(session.createQueue(scene.own("Q")));
        Message sent = session.createMessage();
        sent.setBooleanProperty("truth", true);
        sent.setByteProperty("byte", (byte) -128);
        sent.setShortProperty("short", (short) 32767);
        sent.setIntProperty("int", -5);
        sent.setLongProperty("long", 1L << 40);
        sent.setFloatProperty("float", 1.1f);
        sent.setDoubleProperty("double", 1e-300);
        sent.setStringProperty("string", "a:b\n\\c \u20ac \ud83d\ude00");
        sent.setStringProperty("empty", "");
        sent.setObjectProperty("nothing", null);
        producer.send(sent);
        Message got = session.createConsumer(session.createQueue(scene.own("Q"))).receive(Scene.PATIENCE);
        scene.note("properties", properties(got));
        scene.note("class", got.getClass().getSimpleName());
    }

    static Map<String, String> properties(Message message) throws Exception {
        Map<String, String> found = new TreeMap<>();
        for (Object name : Collections.list(message.getPropertyNames())) {
            Object value = message.getObjectProperty((String) name);
            found.put((String) name, value == null ? "null" : value.getClass().getSimpleName() + " " + value);
        }
        return found;
    }

    public static void bodies_of_every_type(Scene scene) throws Exception {
        bodies(scene, scene.session());
    }

    public static void compressed_bodies_of_every_type(Scene scene) throws Exception {
        bodies(scene, scene.connect("jms.useCompression=true").createSession(false, Session.AUTO_ACKNOWLEDGE));
    }

    private static void bodies(Scene scene, Session session) throws Exception {
        MessageProducer producer = session.createProducer(session.createQueue(scene.own("Q")));
        producer.send(session.createTextMessage("\u00e4\u20ac\ud83d\ude00\0 and the rest".repeat(50)));
        producer.send(session.createTextMessage(""));
        producer.send(session.createTextMessage());
        BytesMessage bytes = session.createBytesMessage();
        bytes.writeBytes(new byte[] {0, 1, -1});
        bytes.writeUTF("text");
        bytes.writeDouble(2.5);
        producer.send(bytes);
        MapMessage map = session.createMapMessage();
        map.setInt("int", 5);
        map.setString("string", "\u20ac");
        map.setBytes("bytes", new byte[] {1, 0, -1});
        map.setChar("char", 'x');
        map.setObject("nothing", null);
        map.setFloat("float", 0.1f);
        producer.send(map);
        StreamMessage stream = session.createStreamMessage();
        stream.writeBoolean(true);
        stream.writeLong(7);
        stream.writeString("x");
        stream.writeBytes(new byte[] {3});
        producer.send(stream);
        producer.send(session.createObjectMessage(new ArrayList<>(List.of("a", 1))));
        producer.send(session.createObjectMessage());
        ActiveMQConnectionFactory factory = scene.factory("");
        factory.setTrustAllPackages(true);
        Session reading = scene.started(factory, null).createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = reading.createConsumer(reading.createQueue(scene.own("Q")));
        List<Object> seen = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            seen.add(body(consumer.receive(Scene.PATIENCE)));
        }
        scene.note("bodies", seen);
    }

    static Object body(Message message) throws Exception {
        if (message instanceof TextMessage text) {
            return Arrays.asList("text", text.getText());
        }
        if (message instanceof BytesMessage bytes) {
            byte[] content = new byte[(int) bytes.getBodyLength()];
            bytes.readBytes(content);
            return Arrays.asList("bytes", Arrays.toString(content));
        }
        if (message instanceof MapMessage map) {
            Map<String, String> entries = new TreeMap<>();
            for (Object name : Collections.list(map.getMapNames())) {
                Object value = map.getObject((String) name);
                entries.put((String) name, value instanceof byte[] raw ? Arrays.toString(raw)
                    : value == null ? "null" : value.getClass().getSimpleName() + " " + value);
            }
            return Arrays.asList("map", entries);
        }
        if (message instanceof StreamMessage stream) {
            List<String> read = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                Object value = stream.readObject();
                read.add(value instanceof byte[] raw ? Arrays.toString(raw) : value.getClass().getSimpleName() + value);
            }
            return Arrays.asList("stream", read);
        }
        if (message instanceof ObjectMessage object) {
            return Arrays.asList("object", String.valueOf(object.getObject()));
        }
        return message == null ? "nothing" : message.getClass().getSimpleName();
    }

    public static void headers(Scene scene) throws Exception {
        Session session = scene.session();
        MessageProducer producer = session.createProducer(session.createQueue(scene.own("Q")));
        TextMessage sent = session.createTextMessage("x");
        sent.setJMSCorrelationID("cause: one\ntwo");
        sent.setJMSType("a type");
        sent.setJMSReplyTo(session.createTopic(scene.own("R")));
        sent.setStringProperty("JMSXGroupID", "group");
        sent.setIntProperty("JMSXGroupSeq", 7);
        producer.send(sent, DeliveryMode.NON_PERSISTENT, 7, 60_000);
        TextMessage bare = session.createTextMessage("y");
        MessageConsumer consumer = session.createConsumer(session.createQueue(scene.own("Q")));
        for (TextMessage each : List.of(sent, bare)) {
            if (each == bare) {
                producer.setDisableMessageTimestamp(true);
                producer.send(bare);
            }
            Message got = consumer.receive(Scene.PATIENCE);
            Map<String, Object> seen = new LinkedHashMap<>();
            seen.put("same id", got.getJMSMessageID().equals(each.getJMSMessageID()));
            seen.put("same timestamp", got.getJMSTimestamp() == each.getJMSTimestamp());
            seen.put("expires after", got.getJMSExpiration() == 0 ? 0 : got.getJMSExpiration() - got.getJMSTimestamp());
            seen.put("correlation", got.getJMSCorrelationID());
            seen.put("type", got.getJMSType());
            seen.put("reply to", String.valueOf(got.getJMSReplyTo()));
            seen.put("destination", String.valueOf(got.getJMSDestination()));
            seen.put("priority", got.getJMSPriority());
            seen.put("mode", got.getJMSDeliveryMode());
            seen.put("redelivered", got.getJMSRedelivered());
            seen.put("properties", properties(got));
            scene.note(Scene.text(got), seen);
        }
    }

    public static void names_of_properties_that_other_protocols_use(Scene scene) throws Exception {
        Session session = scene.session();
        MessageProducer producer = session.createProducer(session.createQueue(scene.own("Q")));
        Message sent = session.createTextMessage("x");
        for (String each : List.of("destination", "priority", "persistent", "transformation", "type", "ack", "receipt")) {
            sent.setStringProperty(each, "mine");
        }
        sent.setIntProperty("expires", 5);
        producer.send(sent);
        Message got = session.createConsumer(session.createQueue(scene.own("Q"))).receive(Scene.PATIENCE);
        scene.note("properties", properties(got));
        scene.note("priority", got.getJMSPriority());
        scene.note("type", got.getJMSType());
    }

    public static void objects_stay_what_they_are(Scene scene) throws Exception {
        Session session = scene.session();
        session.createProducer(session.createQueue(scene.own("Q"))).send(session.createObjectMessage(new java.util.Date(5)));
        Message got = session.createConsumer(session.createQueue(scene.own("Q"))).receive(Scene.PATIENCE);
        ByteSequence raw = ((ActiveMQMessage) got).getContent();
        byte[] content = Arrays.copyOfRange(raw.data, raw.offset, raw.offset + raw.length);
        scene.note("bytes", content.length);
        scene.note("class", new String(content, "ISO-8859-1").contains("java.util.Date"));
    }

    public static void large_messages(Scene scene) throws Exception {
        Session session = scene.session();
        MessageProducer producer = session.createProducer(session.createQueue(scene.own("Q")));
        byte[] content = new byte[3_000_000];
        for (int i = 0; i < content.length; i++) {
            content[i] = (byte) (i * 31 >> 3);
        }
        BytesMessage sent = session.createBytesMessage();
        sent.writeBytes(content);
        producer.send(sent);
        producer.send(session.createTextMessage("after it"));
        MessageConsumer consumer = session.createConsumer(session.createQueue(scene.own("Q")));
        BytesMessage got = (BytesMessage) consumer.receive(Scene.PATIENCE);
        byte[] read = new byte[(int) got.getBodyLength()];
        got.readBytes(read);
        scene.note("the same", Arrays.equals(content, read));
        scene.note("then", Scene.texts(consumer, 1));
    }

    public static void priorities_order_what_waits(Scene scene) throws Exception {
        Session session = scene.session();
        MessageProducer producer = session.createProducer(session.createQueue("priority." + scene.own("Q")));
        for (int priority : new int[] {4, 0, 9, 4, 7}) {
            producer.send(session.createTextMessage("" + priority), DeliveryMode.PERSISTENT, priority, 0);
        }
        scene.note("order", Scene.texts(session.createConsumer(session.createQueue("priority." + scene.own("Q"))), 5));
    }

    public static void expired_messages_do_not_come(Scene scene) throws Exception {
        Session session = scene.session();
        MessageProducer producer = session.createProducer(session.createQueue(scene.own("Q")));
        producer.send(session.createTextMessage("short"), DeliveryMode.PERSISTENT, 4, 50);
        producer.send(session.createTextMessage("long"), DeliveryMode.PERSISTENT, 4, 60_000);
        Thread.sleep(200);
        MessageConsumer consumer = session.createConsumer(session.createQueue(scene.own("Q")));
        scene.note("got", Scene.texts(consumer, 1));
        scene.note("rest", Scene.rest(consumer));
    }
}
