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
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;

/**
 * One real consumer that says which partitions it took.
 *
 * Arguments: zookeeper=HOST:PORT root=/meta group=G topics=a,b strategy=DEFAULT|CONSIST session_timeout_ms=N
 * sync_ms=N commit_ms=N and, if wanted, consumer_id=ID. Command: stop.
 */
public final class MetaqMember {
    private static final long LOOK_EVERY_MS = 20;
    private static final int MAX_MESSAGE_BYTES = 1024;

    public static void main(String[] arguments) {
        Conversation.hold(arguments, MetaqMember::run);
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
        String id = String.valueOf(read(listener, "consumerIdString"));
        Conversation.say("started", "\"member_id\":" + Conversation.quoted(id));
        String told = "";
        while (true) {
            String held = held(listener.getTopicPartitions());
            if (!held.equals(told)) Conversation.say("held", "\"held\":" + held);
            told = held;
            String command = Conversation.COMMANDS.poll(LOOK_EVERY_MS, TimeUnit.MILLISECONDS);
            if ("stop".equals(command)) {
                consumer.shutdown();
                factory.shutdown();
                Conversation.end("stopped", "\"held\":[]");
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
            String name = Conversation.quoted(topic.getKey());
            for (Partition one : topic.getValue()) {
                found.add("[" + name + ",\"" + one.getBrokerId() + "\"," + one.getPartition() + "]");
            }
        }
        Collections.sort(found);
        return "[" + String.join(",", found) + "]";
    }

    private static final class Reader implements MessageListener {
        @Override
        public void recieveMessages(Message message) {
            Partition from = message.getPartition();
            String names = Conversation.quoted(message.getTopic()) + ",\"" + from.getBrokerId() + "\"";
            Conversation.say("read", "\"records\":1,\"queue\":[" + names + "," + from.getPartition() + "]");
        }

        @Override
        public Executor getExecutor() {
            return null;
        }
    }
}
