import java.util.Enumeration;
import java.util.TreeMap;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageEOFException;
import javax.jms.MessageProducer;
import javax.jms.ObjectMessage;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.StreamMessage;
import javax.jms.TextMessage;
import org.apache.activemq.ActiveMQConnectionFactory;

/**
 * Sends or receives a message of each type, and prints what each is.
 *
 * `send URI QUEUE` or `receive URI QUEUE COUNT`.
 */
public class BridgedMessages {
    private static final long RECEIVE_MS = 20_000;

    public static void main(String[] args) throws Exception {
        ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory(args[1]);
        factory.setUseCompression(args.length > 3 && args[3].equals("compressed"));
        factory.setTrustAllPackages(true);
        Connection connection = factory.createConnection();
        connection.start();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Queue queue = session.createQueue(args[2]);
        if (args[0].equals("send")) {
            send(session, queue);
        } else {
            MessageConsumer consumer = session.createConsumer(queue);
            for (int left = Integer.parseInt(args[3]); left > 0; left--) {
                Message message = consumer.receive(RECEIVE_MS);
                System.out.println(message == null ? "nothing" : describe(message));
            }
        }
        connection.close();
    }

    private static void send(Session session, Queue queue) throws Exception {
        TextMessage text = session.createTextMessage("gr\u00fc\u00df \ud83d\ude00 gott" + "!".repeat(600));
        BytesMessage bytes = session.createBytesMessage();
        bytes.writeBytes(new byte[] {0, 1, -1, 10, 0});
        MapMessage map = session.createMapMessage();
        map.setInt("n", 5);
        map.setString("s", "x\u00e9y");
        map.setBytes("b", new byte[] {0, -1});
        map.setDouble("d", 1.5);
        StreamMessage stream = session.createStreamMessage();
        stream.writeLong(7L);
        stream.writeString("seven");
        stream.writeBoolean(true);
        ObjectMessage object = session.createObjectMessage(new java.util.ArrayList<>(java.util.List.of("a", "b")));
        MessageProducer producer = session.createProducer(queue);
        int number = 0;
        for (Message each : new Message[] {
            text, bytes, map, stream, object, session.createMessage(), session.createTextMessage(),
        }) {
            each.setBooleanProperty("yes", true);
            each.setByteProperty("byte", (byte) -1);
            each.setShortProperty("short", (short) 300);
            each.setIntProperty("int", number);
            each.setLongProperty("long", 1L << 40);
            each.setFloatProperty("float", 0.1f);
            each.setDoubleProperty("double", 0.1);
            each.setStringProperty("string", "a:b\n\u00e9");
            each.setStringProperty("priority", "a property of that name");
            each.setJMSType("order");
            each.setJMSCorrelationID("c:1");
            each.setJMSReplyTo(session.createQueue("answers"));
            if (number % 2 == 1) {
                each.setStringProperty("JMSXGroupID", "g");
                each.setIntProperty("JMSXGroupSeq", number);
            }
            int mode = number == 1 ? DeliveryMode.NON_PERSISTENT : DeliveryMode.PERSISTENT;
            producer.send(each, mode, number, number == 2 ? 3_600_000 : 0);
            System.out.println(describe(each));
            number++;
        }
    }

    private static String describe(Message message) throws Exception {
        StringBuilder said = new StringBuilder(message.getJMSMessageID());
        said.append(' ').append(message.getJMSType()).append(' ').append(message.getJMSCorrelationID());
        said.append(' ').append(message.getJMSReplyTo()).append(' ').append(message.getJMSDestination());
        said.append(' ').append(message.getJMSPriority()).append(' ').append(message.getJMSDeliveryMode());
        said.append(' ').append(message.getJMSExpiration()).append(' ').append(message.getJMSTimestamp());
        said.append(' ').append(message.getJMSRedelivered());
        TreeMap<String, String> properties = new TreeMap<>();
        for (Enumeration<?> names = message.getPropertyNames(); names.hasMoreElements();) {
            String name = (String) names.nextElement();
            if (!name.equals("JMSXDeliveryCount")) {
                properties.put(name, typed(message.getObjectProperty(name)));
            }
        }
        String line = said.append(' ').append(properties).append(' ').append(body(message)).toString();
        return line.replace("\n", "\\n").replace("\0", "\\0");
    }

    private static String body(Message message) throws Exception {
        if (message instanceof TextMessage) {
            return "text " + ((TextMessage) message).getText();
        }
        if (message instanceof BytesMessage) {
            ((BytesMessage) message).reset();
            byte[] data = new byte[(int) ((BytesMessage) message).getBodyLength()];
            ((BytesMessage) message).readBytes(data);
            return "bytes " + java.util.Arrays.toString(data);
        }
        if (message instanceof MapMessage) {
            TreeMap<String, String> values = new TreeMap<>();
            for (Enumeration<?> names = ((MapMessage) message).getMapNames(); names.hasMoreElements();) {
                String name = (String) names.nextElement();
                values.put(name, typed(((MapMessage) message).getObject(name)));
            }
            return "map " + values;
        }
        if (message instanceof StreamMessage) {
            StringBuilder values = new StringBuilder("stream");
            ((StreamMessage) message).reset();
            try {
                while (true) {
                    values.append(' ').append(typed(((StreamMessage) message).readObject()));
                }
            } catch (MessageEOFException end) {
                return values.toString();
            }
        }
        return message instanceof ObjectMessage ? "object " + ((ObjectMessage) message).getObject() : "plain";
    }

    private static String typed(Object value) {
        if (value instanceof byte[]) {
            return "byte[] " + java.util.Arrays.toString((byte[]) value);
        }
        return value == null ? "null" : value.getClass().getSimpleName() + " " + value;
    }
}
