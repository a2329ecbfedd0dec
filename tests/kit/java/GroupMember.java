import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * One real consumer that says what it was given.
 *
 * Arguments: consumer settings. Commands: subscribe a,b | pattern REGEX | unsubscribe | commit | pause | resume |
 * close.
 * One source for kafka-clients 1.0 to 4.x: what not all of them have is reached by reflection.
 */
public final class GroupMember {
    private static final long POLL_MS = 50;

    private final KafkaConsumer<byte[], byte[]> consumer;
    private final ConsumerRebalanceListener listener = new Listener();

    private GroupMember(Properties settings) {
        consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    public static void main(String[] arguments) {
        Conversation.hold(arguments, settings -> {
            Properties properties = new Properties();
            properties.putAll(settings);
            new GroupMember(properties).run();
        });
    }

    private void run() throws Exception {
        boolean polling = false;
        while (true) {
            String command = polling ? Conversation.COMMANDS.poll() : Conversation.COMMANDS.take();
            if (command == null) {
                poll();
                continue;
            }
            String[] words = command.split(" ", 2);
            switch (words[0]) {
                case "subscribe":
                    consumer.subscribe(Arrays.asList(words[1].split(",")), listener);
                    polling = true;
                    break;
                case "pattern":
                    consumer.subscribe(Pattern.compile(words[1]), listener);
                    polling = true;
                    break;
                case "server-pattern":
                    subscribeByServer(words[1]);
                    polling = true;
                    break;
                case "unsubscribe":
                    consumer.unsubscribe();
                    polling = false;
                    break;
                case "commit":
                    consumer.commitSync();
                    break;
                case "pause":
                    polling = false;
                    break;
                case "resume":
                    polling = true;
                    break;
                case "close":
                    consumer.close();
                    Conversation.end("closed", "\"owned\":[]");
                    break;
                default:
                    throw new IllegalArgumentException(command);
            }
            Conversation.say("done", "\"command\":" + Conversation.quoted(command));
        }
    }

    /** Have the coordinator resolve a pattern, which clients and brokers can since 4.0. */
    private void subscribeByServer(String pattern) throws ReflectiveOperationException {
        Class<?> kind = Class.forName("org.apache.kafka.clients.consumer.SubscriptionPattern");
        Object compiled = kind.getConstructor(String.class).newInstance(pattern);
        KafkaConsumer.class
                .getMethod("subscribe", kind, ConsumerRebalanceListener.class)
                .invoke(consumer, compiled, listener);
    }

    private void poll() throws Exception {
        try {
            ConsumerRecords<?, ?> records;
            try {
                Method poll = KafkaConsumer.class.getMethod("poll", Duration.class);
                records = (ConsumerRecords<?, ?>) poll.invoke(consumer, Duration.ofMillis(POLL_MS));
            } catch (NoSuchMethodException before20) {
                Method poll = KafkaConsumer.class.getMethod("poll", long.class);
                records = (ConsumerRecords<?, ?>) poll.invoke(consumer, POLL_MS);
            }
            if (records.count() > 0) {
                Conversation.say("read", "\"records\":" + records.count() + ",\"changed\":" + list(records.partitions()));
            }
        } catch (InvocationTargetException wrapped) {
            throw wrapped.getCause() instanceof Exception ? (Exception) wrapped.getCause() : wrapped;
        }
    }

    /** The generation and member id in force, as JSON fields. */
    private String identity() {
        try {
            Object metadata = KafkaConsumer.class.getMethod("groupMetadata").invoke(consumer);
            Object generation = metadata.getClass().getMethod("generationId").invoke(metadata);
            Object member = metadata.getClass().getMethod("memberId").invoke(metadata);
            return identity(generation, member);
        } catch (NoSuchMethodException before25) {
            return identityBefore25();
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Older clients keep it to themselves, in AbstractCoordinator.generation(); null while they are rejoining. */
    private String identityBefore25() {
        try {
            Field coordinator = KafkaConsumer.class.getDeclaredField("coordinator");
            coordinator.setAccessible(true);
            Method ask = coordinator.getType().getSuperclass().getDeclaredMethod("generation");
            ask.setAccessible(true);
            Object generation = ask.invoke(coordinator.get(consumer));
            if (generation == null) return "";
            Field number = generation.getClass().getDeclaredField("generationId");
            Field member = generation.getClass().getDeclaredField("memberId");
            number.setAccessible(true);
            member.setAccessible(true);
            return identity(number.get(generation), member.get(generation));
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    private static String identity(Object generation, Object member) {
        return ",\"generation\":" + generation + ",\"member_id\":" + Conversation.quoted(String.valueOf(member));
    }

    private final class Listener implements ConsumerRebalanceListener {
        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> given) {
            tell("assigned", given, consumer.assignment());
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> taken) {
            tell("revoked", taken, without(taken));
        }

        // Since 2.4; without @Override, so that older clients compile it too.
        public void onPartitionsLost(Collection<TopicPartition> taken) {
            tell("lost", taken, without(taken));
        }

        private Set<TopicPartition> without(Collection<TopicPartition> taken) {
            Set<TopicPartition> left = new HashSet<>(consumer.assignment());
            left.removeAll(taken);
            return left;
        }

        private void tell(String event, Collection<TopicPartition> changed, Collection<TopicPartition> owned) {
            Conversation.say(event, "\"changed\":" + list(changed) + ",\"owned\":" + list(owned) + identity());
        }
    }

    private static String list(Collection<TopicPartition> partitions) {
        List<TopicPartition> sorted = new ArrayList<>(partitions);
        sorted.sort(Comparator.comparing(TopicPartition::topic).thenComparingInt(TopicPartition::partition));
        return sorted.stream()
                .map(one -> "[" + Conversation.quoted(one.topic()) + "," + one.partition() + "]")
                .collect(Collectors.joining(",", "[", "]"));
    }
}
