import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.client.impl.consumer.ProcessQueue;
import org.apache.rocketmq.client.impl.consumer.RebalanceImpl;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.exception.RemotingException;

/**
 * One real push consumer that says which queues it holds.
 *
 * Commands: subscribe TOPIC [EXPRESSION] | unsubscribe TOPIC | suspend | resume | persist | shutdown.
 * What it holds is what its own RebalanceImpl has in its tables, looked at every 100 ms: the same tables that it
 * shows to brokers as its running info. One source for the clients 4.9 and 5: what only 5 has is reached by reflection.
 */
@SuppressWarnings("deprecation")
public final class RocketMqMember {
    private static final long LOOK_MS = 100;
    private static final int START_ATTEMPTS = 5;
    private static final Comparator<Held> ORDER = Comparator.comparing((Held one) -> one.queue);

    private final Map<String, String> settings;
    private DefaultMQPushConsumer consumer;
    private final AtomicInteger consumed = new AtomicInteger();
    private String said = "";
    private int saidConsumed = 0;

    private RocketMqMember(Map<String, String> settings) {
        this.settings = settings;
    }

    public static void main(String[] arguments) {
        Conversation.hold(arguments, settings -> new RocketMqMember(settings).run());
    }

    private void run() throws Exception {
        start();
        String id = consumer.getDefaultMQPushConsumerImpl().getmQClientFactory().getClientId();
        Conversation.say("started", "\"client_id\":" + Conversation.quoted(id));
        while (true) {
            String command = Conversation.COMMANDS.poll(LOOK_MS, TimeUnit.MILLISECONDS);
            if (command != null) obey(command.split(" "), command);
            look();
        }
    }

    /** Start; where a server did not answer within three seconds, as on a busy machine, begin again. */
    private void start() throws Exception {
        for (int attempt = 1; true; attempt++) {
            consumer = new DefaultMQPushConsumer(settings.get("group"));
            configure();
            try {
                consumer.start();
                return;
            } catch (IllegalStateException unanswered) {
                boolean remote = unanswered.getCause() instanceof RemotingException;
                if (!remote || attempt == START_ATTEMPTS) throw unanswered;
                Conversation.say("unanswered", "\"error\":" + Conversation.quoted(String.valueOf(unanswered)));
                consumer.shutdown();
            }
        }
    }

    private void obey(String[] words, String command) throws Exception {
        switch (words[0]) {
            case "subscribe":
                consumer.subscribe(words[1], words.length > 2 ? words[2] : "*");
                break;
            case "unsubscribe":
                consumer.unsubscribe(words[1]);
                break;
            case "suspend":
                consumer.suspend();
                break;
            case "resume":
                consumer.resume();
                break;
            case "persist":
                consumer.getDefaultMQPushConsumerImpl().persistConsumerOffset();
                break;
            case "shutdown":
                consumer.shutdown();
                Conversation.end("stopped", "\"held\":[]");
                break;
            default:
                throw new IllegalArgumentException(command);
        }
        Conversation.say("done", "\"command\":" + Conversation.quoted(command));
    }

    private void configure() throws Exception {
        consumer.setNamesrvAddr(settings.get("name_server"));
        consumer.setClientIP(settings.get("client_ip"));
        consumer.setPollNameServerInterval(number("route_interval_ms", 30_000));
        consumer.setHeartbeatBrokerInterval(number("heartbeat_interval_ms", 30_000));
        consumer.setPersistConsumerOffsetInterval(number("persist_interval_ms", 5_000));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        // The enumeration has moved between packages; its names have not.
        for (var set : DefaultMQPushConsumer.class.getMethods()) {
            if (set.getName().equals("setMessageModel")) {
                set.invoke(consumer, set.getParameterTypes()[0].getField(settings.get("message_model")).get(null));
            }
        }
        if (settings.containsKey("instance")) consumer.setInstanceName(settings.get("instance"));
        if (settings.containsKey("unit")) consumer.setUnitName(settings.get("unit"));
        if (settings.containsKey("namespace")) consumer.setNamespace(settings.get("namespace"));
        if ("false".equals(settings.get("client_rebalance"))) {
            DefaultMQPushConsumer.class.getMethod("setClientRebalance", boolean.class).invoke(consumer, false);
        }
        consumer.setAllocateMessageQueueStrategy(strategy(settings.get("strategy")));
        int pause = number("consume_ms", 0);
        String stuck = settings.get("stuck_on");
        if ("true".equals(settings.get("ordered"))) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                consume(messages.size(), pause);
                return ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                if (stuck != null && new String(messages.get(0).getBody()).equals(stuck)) forever();
                if ("true".equals(settings.get("notes"))) note(context.getMessageQueue());
                consume(messages.size(), pause);
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        for (String topic : list("topics")) consumer.subscribe(topic, "*");
    }

    private static void note(MessageQueue queue) {
        String names = Conversation.quoted(queue.getTopic()) + "," + Conversation.quoted(queue.getBrokerName());
        Conversation.say("got", "\"queue\":[" + names + "," + queue.getQueueId() + "]");
    }

    private void consume(int count, int pause) {
        try {
            Thread.sleep(pause);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
        consumed.addAndGet(count);
    }

    /** Work on a message, and on it alone, until the process ends. */
    private static void forever() {
        try {
            Thread.sleep(Long.MAX_VALUE);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }

    private AllocateMessageQueueStrategy strategy(String name) {
        switch (name) {
            case "AVG":
                return new AllocateMessageQueueAveragely();
            case "AVG_BY_CIRCLE":
                return new AllocateMessageQueueAveragelyByCircle();
            case "CONSISTENT_HASH":
                return new AllocateMessageQueueConsistentHash(number("virtual_nodes", 10));
            case "CONFIG": {
                AllocateMessageQueueByConfig config = new AllocateMessageQueueByConfig();
                List<MessageQueue> queues = new ArrayList<>();
                for (String queue : list("queues")) {
                    String[] parts = queue.split("/");
                    queues.add(new MessageQueue(parts[0], parts[1], Integer.parseInt(parts[2])));
                }
                config.setMessageQueueList(queues);
                return config;
            }
            case "MACHINE_ROOM": {
                AllocateMessageQueueByMachineRoom room = new AllocateMessageQueueByMachineRoom();
                room.setConsumeridcs(new HashSet<>(list("rooms")));
                return room;
            }
            case "MACHINE_ROOM_NEARBY":
                return new AllocateMachineRoomNearby(strategy(settings.getOrDefault("inner", "AVG")), new Rooms());
            default:
                throw new IllegalArgumentException(name);
        }
    }

    /** The rooms as they were told: broker_rooms and member_rooms, each name/room,name/room. */
    private final class Rooms implements AllocateMachineRoomNearby.MachineRoomResolver {
        @Override
        public String brokerDeployIn(MessageQueue queue) {
            return room("broker_rooms", queue.getBrokerName());
        }

        @Override
        public String consumerDeployIn(String clientId) {
            return room("member_rooms", clientId);
        }

        private String room(String map, String name) {
            for (String pair : list(map)) {
                int cut = pair.lastIndexOf('/');
                if (pair.substring(0, cut).equals(name)) return pair.substring(cut + 1);
            }
            return null;
        }
    }

    /** Say what is held if it is not what was said last, and how many messages came since. */
    private void look() throws Exception {
        RebalanceImpl rebalance = consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl();
        List<Held> held = new ArrayList<>();
        for (Map.Entry<MessageQueue, ProcessQueue> one : rebalance.getProcessQueueTable().entrySet()) {
            if (!one.getValue().isDropped()) held.add(new Held(one.getKey(), "pull", one.getValue().isLocked()));
        }
        for (MessageQueue queue : popped(rebalance)) held.add(new Held(queue, "pop", false));
        held.sort(ORDER);
        String now = held.stream().map(Held::json).collect(Collectors.joining(",", "[", "]"));
        if (!now.equals(said)) {
            said = now;
            Conversation.say("held", "\"held\":" + now);
        }
        int count = consumed.get();
        if (count != saidConsumed) {
            Conversation.say("read", "\"records\":" + (count - saidConsumed));
            saidConsumed = count;
        }
    }

    @SuppressWarnings("unchecked")
    private static List<MessageQueue> popped(RebalanceImpl rebalance) throws ReflectiveOperationException {
        try {
            Object table = RebalanceImpl.class.getMethod("getPopProcessQueueTable").invoke(rebalance);
            return new ArrayList<>(((Map<MessageQueue, ?>) table).keySet());
        } catch (NoSuchMethodException before5) {
            return List.of();
        }
    }

    private static final class Held {
        private final MessageQueue queue;
        private final String mode;
        private final boolean locked;

        private Held(MessageQueue queue, String mode, boolean locked) {
            this.queue = queue;
            this.mode = mode;
            this.locked = locked;
        }

        private String json() {
            String topic = Conversation.quoted(queue.getTopic());
            String broker = Conversation.quoted(queue.getBrokerName());
            return "{\"topic\":" + topic + ",\"broker\":" + broker + ",\"queue_id\":" + queue.getQueueId()
                    + ",\"mode\":" + Conversation.quoted(mode) + ",\"locked\":" + locked + "}";
        }
    }

    private int number(String key, int otherwise) {
        return settings.containsKey(key) ? Integer.parseInt(settings.get(key)) : otherwise;
    }

    private List<String> list(String key) {
        String value = settings.getOrDefault(key, "");
        return value.isEmpty() ? List.of() : Arrays.asList(value.split(","));
    }
}
