import com.taobao.metamorphosis.Message;
import com.taobao.metamorphosis.client.MetaClientConfig;
import com.taobao.metamorphosis.client.MetaMessageSessionFactory;
import com.taobao.metamorphosis.client.consumer.ConsumerConfig;
import com.taobao.metamorphosis.client.consumer.ConsumerZooKeeper;
import com.taobao.metamorphosis.client.consumer.LoadBalanceStrategy;
import com.taobao.metamorphosis.client.consumer.MessageConsumer;
import com.taobao.metamorphosis.client.consumer.MessageListener;
import com.taobao.metamorphosis.client.consumer.SimpleMessageConsumer;
import com.taobao.metamorphosis.cluster.Partition;
import com.taobao.metamorphosis.utils.ZkUtils.ZKConfig;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/**
 * One real consumer that says, one JSON object a line, which partitions it took.
 *
 * Arguments: zookeeper=HOST:PORT root=/meta group=G topics=a,b strategy=DEFAULT|CONSIST session_timeout_ms=N
 * sync_ms=N commit_ms=N and, if wanted, consumer_id=ID. Commands on standard input, one a line: stop.
 * The end of standard input ends the process at once.
 */
public final class MetaqMember {
    private static final long LOOK_EVERY_MS = 20;
    private static final int MAX_MESSAGE_BYTES = 1024;
    private static final BlockingQueue<String> COMMANDS = new LinkedBlockingQueue<>();

    public static void main(String[] arguments) {
        Map<String, String> settings = new HashMap<>();
        for (String argument : arguments) {
            int cut = argument.indexOf('=');
            settings.put(argument.substring(0, cut), argument.substring(cut + 1));
        }
        Thread reader = new Thread(() -> {
            Scanner lines = new Scanner(System.in);
            while (lines.hasNextLine()) COMMANDS.add(lines.nextLine().trim());
            Runtime.getRuntime().halt(3);
        }, "commands");
        reader.setDaemon(true);
        reader.start();
        try {
            run(settings);
        } catch (Throwable error) {
            say("failed", "\"error\":" + quoted(String.valueOf(error)));
            Runtime.getRuntime().halt(1);
        }
    }

    private static void run(Map<String, String> settings) throws Exception {
        ZKConfig keeper = new ZKConfig();
        keeper.zkConnect = settings.get("zookeeper");
        keeper.zkRoot = settings.get("root");
        keeper.zkSessionTimeoutMs = Integer.parseInt(settings.get("session_timeout_ms"));
        keeper.zkSyncTimeMs = Integer.parseInt(settings.get("sync_ms"));
        MetaClientConfig client = new MetaClientConfig();
        client.setZkConfig(keeper);
        MetaMessageSessionFactory factory = new MetaMessageSessionFactory(client);

        ConsumerConfig config = settings.containsKey("consumer_id")
                ? new ConsumerConfig(settings.get("consumer_id"), settings.get("group"))
                : new ConsumerConfig(settings.get("group"));
        config.setLoadBalanceStrategyType(LoadBalanceStrategy.Type.valueOf(settings.get("strategy")));
        config.setCommitOffsetPeriodInMills(Long.parseLong(settings.get("commit_ms")));
        MessageConsumer consumer = factory.createConsumer(config);
        for (String topic : settings.get("topics").split(",")) consumer.subscribe(topic, MAX_MESSAGE_BYTES, new Reader());
        consumer.completeSubscribe();

        ConsumerZooKeeper.ZKLoadRebalanceListener listener = listener((SimpleMessageConsumer) consumer);
        say("started", "\"member_id\":" + quoted(String.valueOf(read(listener, "consumerIdString"))));
        String told = "";
        while (true) {
            String held = held(listener.getTopicPartitions());
            if (!held.equals(told)) say("held", "\"held\":" + held);
            told = held;
            String command = COMMANDS.poll(LOOK_EVERY_MS, TimeUnit.MILLISECONDS);
            if ("stop".equals(command)) {
                consumer.shutdown();
                factory.shutdown();
                say("stopped", "\"held\":[]");
                Runtime.getRuntime().halt(0);
            }
        }
    }

    private static ConsumerZooKeeper.ZKLoadRebalanceListener listener(SimpleMessageConsumer consumer) throws Exception {
        ConsumerZooKeeper keeper = (ConsumerZooKeeper) read(consumer, "consumerZooKeeper");
        return keeper.getBrokerConnectionListener(consumer.getFetchManager());
    }

    private static Object read(Object owner, String name) throws Exception {
        Field field = owner.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(owner);
    }

    private static String held(Map<String, Set<Partition>> partitions) {
        List<String> found = new ArrayList<>();
        for (Map.Entry<String, Set<Partition>> topic : partitions.entrySet()) {
            for (Partition one : topic.getValue()) {
                found.add("[" + quoted(topic.getKey()) + ",\"" + one.getBrokerId() + "\"," + one.getPartition() + "]");
            }
        }
        Collections.sort(found);
        return "[" + String.join(",", found) + "]";
    }

    private static final class Reader implements MessageListener {
        @Override
        public void recieveMessages(Message message) {
            say("read", "\"records\":1");
        }

        @Override
        public Executor getExecutor() {
            return null;
        }
    }

    private static String quoted(String text) {
        StringBuilder json = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') json.append('\\').append(c);
            else if (c < ' ') json.append(String.format("\\u%04x", (int) c));
            else json.append(c);
        }
        return json.append('"').toString();
    }

    private static synchronized void say(String event, String fields) {
        System.out.println("{\"event\":" + quoted(event) + ",\"at_ms\":" + System.currentTimeMillis() + "," + fields + "}");
        System.out.flush();
    }
}
