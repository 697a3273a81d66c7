import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import org.apache.activemq.command.ActiveMQMessage;
import org.apache.activemq.filter.Expression;
import org.apache.activemq.filter.MessageEvaluationContext;
import org.apache.activemq.selector.SelectorParser;

/**
 * Evaluates selectors on messages with ActiveMQ's own classes. Each line is a message (`m` and three fields for each
 * property: name, type, value in Base64) or a selector (`s`, in Base64), whose answer is one character for each message
 * so far: T, F, ? for unknown, ! for an exception.
 */
public class TypedSelectors {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        List<ActiveMQMessage> messages = new ArrayList<>();
        for (String line; (line = lines.readLine()) != null; ) {
            String[] fields = line.split(" ");
            if (fields[0].equals("m")) {
                messages.add(message(fields));
            } else {
                System.out.println(answers(text(fields[1]), messages));
                System.out.flush();
            }
        }
    }

    private static ActiveMQMessage message(String[] fields) throws Exception {
        ActiveMQMessage message = new ActiveMQMessage();
        for (int i = 1; i < fields.length; i += 3) {
            message.setProperty(fields[i], value(fields[i + 1], fields.length > i + 2 ? text(fields[i + 2]) : ""));
        }
        return message;
    }

    private static Object value(String type, String text) {
        switch (type) {
            case "b": return Byte.valueOf(text);
            case "h": return Short.valueOf(text);
            case "i": return Integer.valueOf(text);
            case "l": return Long.valueOf(text);
            case "f": return Float.valueOf(text);
            case "d": return Double.valueOf(text);
            case "z": return Boolean.valueOf(text);
            default: return text;
        }
    }

    private static String answers(String selector, List<ActiveMQMessage> messages) {
        SelectorParser.clearCache(); // it forgets the prefix
        StringBuilder found = new StringBuilder();
        for (ActiveMQMessage message : messages) {
            MessageEvaluationContext context = new MessageEvaluationContext();
            context.setMessageReference(message);
            try {
                Object answer = ((Expression) SelectorParser.parse(selector)).evaluate(context);
                found.append(answer == null ? '?' : Boolean.TRUE.equals(answer) ? 'T' : 'F');
            } catch (Exception failed) {
                found.append('!');
            }
        }
        return found.toString();
    }

    private static String text(String field) {
        return new String(Base64.getDecoder().decode(field.substring(1)), StandardCharsets.UTF_8); // after a `=`
    }
}
