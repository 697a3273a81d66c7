import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import javax.jms.BytesMessage;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TextMessage;

/** JMS clients and STOMP clients exchange messages. */
public class OtherProtocols {
    public static void from_stomp(Scene scene) throws Exception {
        Session session = scene.session();
        MessageConsumer consumer = session.createConsumer(session.createQueue(scene.own("Q")));
        try (StompClient stomp = new StompClient(scene.brokers.stomp())) {
            String to = "SEND\ndestination:/queue/" + scene.own("Q") + "\n";
            stomp.send(to + "n:5\ncorrelation-id:c\ntype:t\nreply-to:/topic/R\npersistent:true\npriority:6\n\n", "text \u20ac");
            stomp.send(to + "content-length:3\n\n", "a\0b");
            for (int i = 0; i < 2; i++) {
                Message got = consumer.receive(Scene.PATIENCE);
                Map<String, Object> seen = new TreeMap<>();
                seen.put("body", Messages.body(got));
                seen.put("correlation", got.getJMSCorrelationID());
                seen.put("type", got.getJMSType());
                seen.put("reply to", String.valueOf(got.getJMSReplyTo()));
                seen.put("mode", got.getJMSDeliveryMode());
                seen.put("priority", got.getJMSPriority());
                seen.put("n", String.valueOf(got.getObjectProperty("n")));
                scene.note("message " + i, seen);
            }
        }
    }

    public static void to_stomp(Scene scene) throws Exception {
        Session session = scene.session();
        MessageProducer producer = session.createProducer(session.createQueue(scene.own("Q")));
        TextMessage text = session.createTextMessage("text \u20ac");
        text.setIntProperty("int", 5);
        text.setBooleanProperty("truth", true);
        text.setDoubleProperty("double", 2.5);
        text.setFloatProperty("float", 0.1f);
        text.setJMSCorrelationID("c");
        text.setJMSType("t");
        text.setJMSReplyTo(session.createQueue("R"));
        producer.send(text);
        BytesMessage bytes = session.createBytesMessage();
        bytes.writeBytes(new byte[] {1, 0, 2});
        producer.send(bytes);
        MapMessage map = session.createMapMessage();
        map.setInt("int", 5);
        producer.send(map);
        try (StompClient stomp = new StompClient(scene.brokers.stomp())) {
            stomp.send("SUBSCRIBE\nid:1\nack:auto\ndestination:/queue/" + scene.own("Q") + "\n\n", "");
            for (int i = 0; i < 2; i++) {
                StompClient.Frame got = stomp.receive(Scene.PATIENCE);
                Map<String, String> headers = new TreeMap<>(got.headers());
                for (String each : List.of("message-id", "timestamp", "subscription", "expires")) {
                    headers.remove(each);
                }
                headers.values().removeIf(String::isEmpty);
                scene.note("headers " + i, headers);
                scene.note("body " + i, new String(got.body(), StandardCharsets.UTF_8));
            }
            StompClient.Frame got = stomp.receive(Scene.PATIENCE);
            scene.note("map", got.text().replaceAll("\\s", ""));
        }
    }

    public static void selectors_of_stomp_on_typed_properties(Scene scene) throws Exception {
        Session session = scene.session();
        for (String selector : List.of("n > 2", "n = '2'", "n <> '2'", "z = TRUE", "f = '2.5'", "d = '1.5'", "s = 5",
                "s = '5'", "NOT (n = '3')", "n BETWEEN 2 AND 3", "n IN ('2')", "n LIKE '2'", "n + 1 = '3'", "l <> 2")) {
            String queue = scene.own("Q") + Integer.toHexString(selector.hashCode());
            MessageProducer producer = session.createProducer(session.createQueue(queue));
            try (StompClient stomp = new StompClient(scene.brokers.stomp())) {
                // The end is taken from the same queue by the same selector: the order of two queues is not promised.
                String asked = "selector:(" + selector + ") OR e = 'end'\ndestination:/queue/" + queue;
                stomp.confirmed("SUBSCRIBE\nid:1\nack:auto\n" + asked + "\n\n", "");
                for (int i = 1; i < 4; i++) {
                    Message message = session.createTextMessage("" + i);
                    message.setIntProperty("n", i);
                    message.setLongProperty("l", i);
                    message.setFloatProperty("f", i + 0.5f);
                    message.setDoubleProperty("d", i / 2.0);
                    message.setBooleanProperty("z", i == 2);
                    message.setStringProperty("s", i == 3 ? "5" : "x");
                    producer.send(message);
                }
                Message end = session.createTextMessage("end");
                end.setStringProperty("e", "end");
                producer.send(end);
                List<String> got = new ArrayList<>();
                for (String text; !(text = stomp.receive(Scene.PATIENCE).text()).equals("end"); ) {
                    got.add(text);
                }
                scene.note(selector, got);
            }
        }
    }

    public static void request_of_stomp(Scene scene) throws Exception {
        Session session = scene.session();
        MessageConsumer requests = session.createConsumer(session.createQueue(scene.own("Q")));
        try (StompClient stomp = new StompClient(scene.brokers.stomp())) {
            stomp.send("SUBSCRIBE\nid:1\nack:auto\ndestination:/temp-queue/answers\n\n", "");
            stomp.send("SEND\ndestination:/queue/" + scene.own("Q") + "\nreply-to:/temp-queue/answers\n\n", "who?");
            Message request = requests.receive(Scene.PATIENCE);
            scene.note("request", Scene.text(request));
            session.createProducer(request.getJMSReplyTo()).send(session.createTextMessage("me"));
            scene.note("answer", stomp.receive(Scene.PATIENCE).text());
        }
    }

    public static void topics_of_both(Scene scene) throws Exception {
        Session session = scene.session();
        MessageConsumer consumer = session.createConsumer(session.createTopic(scene.own("T")));
        try (StompClient stomp = new StompClient(scene.brokers.stomp())) {
            stomp.confirmed("SUBSCRIBE\nid:1\nack:auto\ndestination:/topic/" + scene.own("T") + "\n\n", "");
            stomp.send("SEND\ndestination:/topic/" + scene.own("T") + "\n\n", "of stomp");
            scene.note("at JMS", Scene.texts(consumer, 1));
            session.createProducer(session.createTopic(scene.own("T"))).send(session.createTextMessage("of JMS"));
            List<String> got = new ArrayList<>();
            got.add(stomp.receive(Scene.PATIENCE).text());
            got.add(stomp.receive(Scene.PATIENCE).text());
            scene.note("at STOMP", got);
        }
    }
}
