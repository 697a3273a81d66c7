import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;

/** The broker that the scenarios use: its addresses, and who kills and starts it. */
record Brokers(int openwire, int stomp, int narrow) {
    private static final BufferedReader ANSWERS = new BufferedReader(new InputStreamReader(System.in));

    String tcp() {
        return "tcp://127.0.0.1:" + openwire;
    }

    /** A connector that takes short frames only, and where a client id is taken over by who comes last. */
    String narrowTcp() {
        return "tcp://127.0.0.1:" + narrow;
    }

    /** Ask who started this program to kill the broker, and to start it again on its data. */
    static synchronized void killAndStart() throws IOException {
        ask("kill");
        ask("start");
    }

    static synchronized void ask(String what) throws IOException {
        System.out.println("@" + what);
        System.out.flush();
        String answer = ANSWERS.readLine();
        if (!"done".equals(answer)) {
            throw new IOException(what + " of the broker: " + answer);
        }
    }
}
