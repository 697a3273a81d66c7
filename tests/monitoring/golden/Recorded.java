import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.HashMap;
import org.apache.activemq.broker.BrokerService;
import org.jolokia.backend.BackendManager;
import org.jolokia.config.ConfigKey;
import org.jolokia.config.Configuration;
import org.jolokia.http.HttpRequestHandler;
import org.jolokia.restrictor.AllowAllRestrictor;
import org.jolokia.util.LogHandler;
import org.json.simple.JSONAware;

/** ActiveMQ with Jolokia before it, as its web console has it. Arguments: port of STOMP, port of HTTP, data directory. */
public class Recorded {
  public static void main(String[] arguments) throws Exception {
    BrokerService broker = new BrokerService();
    broker.setBrokerName("localhost");
    broker.setDataDirectory(arguments[2]);
    broker.getManagementContext().setCreateConnector(false);
    broker.addConnector("stomp://127.0.0.1:" + arguments[0]).setName("stomp");
    broker.start();
    broker.waitUntilStarted();
    HttpRequestHandler handler = handler();
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[1])), 0);
    server.createContext("/", exchange -> {
      JSONAware answer;
      try {
        String path = exchange.getRequestURI().getPath();
        answer = exchange.getRequestMethod().equals("POST")
          ? handler.handlePostRequest("/", exchange.getRequestBody(), "UTF-8", new HashMap<>())
          : handler.handleGetRequest("/", path, new HashMap<>());
      } catch (Throwable failure) {
        answer = handler.handleThrowable(failure);
      }
      byte[] body = answer.toJSONString().getBytes("UTF-8");
      exchange.sendResponseHeaders(200, body.length);
      exchange.getResponseBody().write(body);
      exchange.close();
    });
    server.start();
    System.out.println("ready");
    broker.waitUntilStopped();
  }

  private static HttpRequestHandler handler() {
    LogHandler log = new LogHandler() {
      public void debug(String text) {}
      public void info(String text) {}
      public void error(String text, Throwable cause) {}
    };
    Configuration configuration = new Configuration(ConfigKey.AGENT_ID, "recorded", ConfigKey.ALLOW_ERROR_DETAILS, "false");
    return new HttpRequestHandler(configuration, new BackendManager(configuration, log, new AllowAllRestrictor()), log);
  }
}
