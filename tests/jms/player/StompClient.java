import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;

/** As much of STOMP 1.1 as it takes to be the other side of a JMS client. */
final class StompClient implements AutoCloseable {
    record Frame(String command, Map<String, String> headers, byte[] body) {
        String text() {
            return new String(body, StandardCharsets.UTF_8);
        }
    }

    private final Socket socket;
    private final InputStream in;

    StompClient(int port) throws IOException {
        socket = new Socket("127.0.0.1", port);
        in = new java.io.BufferedInputStream(socket.getInputStream());
        send("CONNECT\naccept-version:1.1\nhost:x\n\n", "");
        receive(Scene.PATIENCE);
    }

    /** Send a frame: its command and headers with the empty line, then its body. */
    void send(String head, String body) throws IOException {
        socket.getOutputStream().write((head + body + "\0").getBytes(StandardCharsets.UTF_8));
    }

    /** Send a frame, and return when the broker has confirmed it. */
    void confirmed(String head, String body) throws IOException {
        send(head.replaceFirst("\n", "\nreceipt:r\n"), body);
        receive(Scene.PATIENCE);
    }

    /** The next frame; null if none comes in time. */
    Frame receive(long milliseconds) throws IOException {
        socket.setSoTimeout((int) milliseconds);
        try {
            String command;
            do {
                command = line();
            } while (command.isEmpty());
            Map<String, String> headers = new TreeMap<>();
            for (String line; !(line = line()).isEmpty(); ) {
                int colon = line.indexOf(':');
                headers.putIfAbsent(line.substring(0, colon), line.substring(colon + 1));
            }
            ByteArrayOutputStream body = new ByteArrayOutputStream();
            int length = Integer.parseInt(headers.getOrDefault("content-length", "-1"));
            for (int each; (each = in.read()) != 0 || body.size() < length; ) {
                body.write(each);
            }
            return new Frame(command, headers, body.toByteArray());
        } catch (SocketTimeoutException late) {
            return null;
        }
    }

    private String line() throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        for (int each; (each = in.read()) != '\n'; ) {
            if (each < 0) {
                throw new IOException("the broker closed the connection");
            }
            line.write(each);
        }
        return line.toString(StandardCharsets.UTF_8);
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
