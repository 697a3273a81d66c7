import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * Plays scenarios, several at a time, and prints what each saw as a line of JSON.
 *
 * A scenario is a public static method of a class of scenarios; arguments: the ports of the connectors (see Brokers), how
 * many scenarios at a time, and CLASS.METHOD of each.
 */
public class Player {
    /** Milliseconds that a scenario may take. */
    static final long LIMIT = 100_000;

    public static void main(String[] arguments) throws Exception {
        Brokers brokers = new Brokers(Integer.parseInt(arguments[0]), Integer.parseInt(arguments[1]), Integer.parseInt(arguments[2]));
        ExecutorService players = Executors.newFixedThreadPool(Integer.parseInt(arguments[3]));
        for (String each : List.of(arguments).subList(4, arguments.length)) {
            players.execute(() -> play(each, brokers));
        }
        players.shutdown();
        players.awaitTermination(10, TimeUnit.MINUTES);
        System.exit(0); // some scenario may not end
    }

    private static void play(String scenario, Brokers brokers) {
        String[] names = scenario.split("\\.");
        Scene scene = new Scene(names[1], brokers);
        Thread playing = new Thread(() -> {
            try (scene) {
                Class.forName(names[0]).getMethod(names[1], Scene.class).invoke(null, scene);
            } catch (InvocationTargetException failed) {
                scene.note("failed", failed.getCause().toString());
                failed.getCause().printStackTrace();
            } catch (ReflectiveOperationException missing) {
                scene.note("failed", missing.toString());
            }
        });
        playing.setDaemon(true);
        playing.start();
        try {
            playing.join(LIMIT);
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
        synchronized (System.out) {
            if (playing.isAlive()) {
                scene.note("failed", "it does not end");
            }
            System.out.println("{\"name\":" + json(scenario) + ",\"notes\":" + json(scene.notes) + "}");
            System.out.flush();
        }
    }

    static String json(Object value) {
        if (value == null || value instanceof Boolean || value instanceof Integer || value instanceof Long) {
            return String.valueOf(value);
        }
        if (value instanceof Map<?, ?> map) {
            List<String> parts = new ArrayList<>();
            map.forEach((key, each) -> parts.add(json(String.valueOf(key)) + ":" + json(each)));
            return "{" + String.join(",", parts) + "}";
        }
        if (value instanceof Iterable<?> many) {
            List<String> parts = new ArrayList<>();
            many.forEach(each -> parts.add(json(each)));
            return "[" + String.join(",", parts) + "]";
        }
        StringBuilder quoted = new StringBuilder("\"");
        for (char each : value.toString().toCharArray()) {
            if (each == '"' || each == '\\') {
                quoted.append('\\').append(each);
            } else if (each < ' ' || each > '~') {
                quoted.append(String.format("\\u%04x", (int) each));
            } else {
                quoted.append(each);
            }
        }
        return quoted.append('"').toString();
    }
}
